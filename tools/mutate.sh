#!/bin/sh
# Plants the bugs that test/mutants/ lists, one at a time, in a copy of the sources, and reports which the tests miss.
#
#   tools/mutate.sh [PATTERN...]   plants the mutants whose names match a pattern of the shell ("split_*"), or all
#   tools/mutate.sh --list         names every mutant and says what it breaks
#   tools/mutate.sh --check        checks that every mutant still applies to the sources; builds nothing
#
# A list holds records, apart from each other by empty lines; lines that begin with # are comments:
#
#   mutant: macro_f1_present      its name, which no other mutant has
#   file: src/train/metric.c      the file that is changed
#   before: sum / K               text of that file, within one line, that occurs exactly once in it
#   after: sum / (K + 1)          what stands there instead; may be empty
#   breaks: Macro F1 is too low.  the bug, in a sentence
#   tests: test_metric test_skill binaries that should notice, the quickest first; NAME=VALUE sets a variable for those behind
#   survives: ...                 where no test can notice: why. Optional
#
# The copy and its build are in build-mutants and stay there, so that the next run builds little. A mutant is caught by a
# test that fails or runs longer than TRADEWIND_MUTANT_SECONDS (300). Exit status 1: a mutant survives without a reason;
# 2: the list is wrong (a text that is not found once, code that does not compile), or a test fails without any bug.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
lists=$root/test/mutants
home=$root/build-mutants
tree=$home/tree
build=$home/build
limit=${TRADEWIND_MUTANT_SECONDS:-300}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

fail() {
    echo "mutate: $*" >&2
    exit 2
}

# Puts every record as a folder of fields into $work/mutant, and the names in order into $work/names.
read_lists() {
    mkdir "$work/mutant"
    : >"$work/names"
    awk -v to="$work" '
        function complain(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; bad = 1; exit 2 }
        function put(key, value) { print value >(to "/mutant/" name "/" key); close(to "/mutant/" name "/" key) }
        /^#/ || /^$/ { next }
        !match($0, /^(mutant|file|before|after|breaks|tests|survives):/) { complain("no field of a mutant: " $0) }
        {
            key = substr($0, 1, RLENGTH - 1)
            value = substr($0, RLENGTH + 2)
            if (key == "mutant") {
                if (value !~ /^[a-z0-9_]+$/ || value in seen) complain("the name " value " is taken, or is none")
                name = value
                seen[name] = 1
                system("mkdir " to "/mutant/" name)
                print name >(to "/names")
            } else {
                if (name == "" || (name, key) in seen) complain("the field " key " stands twice, or before its mutant")
                seen[name, key] = 1
                put(key, value)
            }
        }' "$lists"/*.txt >&2 || exit 2
}

# field NAME KEY: the value; empty where it has none.
field() {
    [ ! -f "$work/mutant/$1/$2" ] || cat "$work/mutant/$1/$2"
}

# Writes a mutant's file, changed, to stdout; fails unless the text to change is there exactly once.
changed() {
    BEFORE=$(field "$1" before) AFTER=$(field "$1" after) awk '
        BEGIN { from = ENVIRON["BEFORE"]; to = ENVIRON["AFTER"]; size = length(from) }
        {
            for (at = index(rest = $0, from); at; at = index(rest, from)) { found++; rest = substr(rest, at + size) }
            at = index($0, from)
            print at ? substr($0, 1, at - 1) to substr($0, at + size) : $0
        }
        END { exit found != 1 }' "$root/$(field "$1" file)"
}

# The names of a mutant's tests, without variables.
tests_of() {
    for word in $(field "$1" tests); do
        case $word in *=*) ;; *) echo "$word" ;; esac
    done
}

check_one() {
    for key in file before breaks tests; do
        [ -n "$(field "$1" "$key")" ] || { echo "mutate: $1: has no $key"; return 1; }
    done
    [ -f "$work/mutant/$1/after" ] || { echo "mutate: $1: has no after"; return 1; }
    [ "$(field "$1" before)" != "$(field "$1" after)" ] || { echo "mutate: $1: changes nothing"; return 1; }
    [ -f "$root/$(field "$1" file)" ] || { echo "mutate: $1: there is no $(field "$1" file)"; return 1; }
    changed "$1" >/dev/null || { echo "mutate: $1: $(field "$1" file) does not hold its text exactly once"; return 1; }
    for test in $(tests_of "$1"); do
        grep -qx "$test" "$work/tests" || { echo "mutate: $1: there is no test $test"; return 1; }
    done
}

check_all() {
    find "$root/test" -name 'test_*.c' | sed 's|.*/||; s|\.c$||' >"$work/tests"
    bad=0
    while read -r name; do check_one "$name" >&2 || bad=1; done <"$work/names"
    return $bad
}

# Brings the copy up to date. Files that are the same keep their times, so that little is built.
copy_tree() {
    mkdir -p "$tree"
    (cd "$root" && git ls-files -co --exclude-standard 2>/dev/null || find . -path './build*' -prune -o -type f -print) >"$work/files"
    while read -r file; do
        [ -f "$root/$file" ] || continue
        cmp -s "$root/$file" "$tree/$file" && continue
        mkdir -p "$(dirname "$tree/$file")"
        cp "$root/$file" "$tree/$file"
    done <"$work/files"
    (cd "$tree" && find . -type f | sed 's|^\./||') | LC_ALL=C sort >"$work/copied"
    sed 's|^\./||' "$work/files" | LC_ALL=C sort | LC_ALL=C comm -13 - "$work/copied" | while read -r file; do rm "$tree/$file"; done
    [ ! -d "$root/../shared" ] || ln -sfn "$(cd "$root/../shared" && pwd)" "$home/shared"
}

# build_targets TARGET...: the output is in $work/log.
build_targets() {
    cmake --build "$build" --parallel "$(nproc 2>/dev/null || echo 2)" --target tradewind "$@" >"$work/log" 2>&1
}

# run_test NAME [NAME=VALUE...]: the output is in $work/log.
run_test() {
    test=$1
    shift
    (cd "$build" && exec env "$@" timeout "$limit" "./$test") >"$work/log" 2>&1
}

# Every test that is to catch something passes without a bug, or what it catches would mean nothing.
check_tests() {
    sort -u "$work/wanted" >"$work/tests"
    build_targets $(cat "$work/tests") || { cat "$work/log"; fail "the sources do not build"; }
    while read -r test; do
        run_test "$test" || { cat "$work/log"; fail "$test fails without a bug"; }
    done <"$work/tests"
}

# Runs a planted mutant's tests until one fails; the verdict is in $verdict, empty where it survives.
run_tests() {
    verdict=
    set --
    for word in $(field "$name" tests); do
        case $word in
            *=*) set -- "$@" "$word" ; continue ;;
        esac
        status=0
        run_test "$word" "$@" || status=$?
        [ $status != 0 ] || continue
        verdict="caught by $word"
        [ $status != 124 ] || verdict="$verdict, which did not end"
        return
    done
}

# Plants one mutant, tells what came of it, and restores the file. The file is newer than what was built of it both
# times, so that it is built again.
try() {
    name=$1
    file=$(field "$name" file)
    changed "$name" >"$tree/$file"
    built=0
    if build_targets $(tests_of "$name"); then run_tests; else built=1; fi
    cp "$root/$file" "$tree/$file"
    reason=$(field "$name" survives)
    if [ $built != 0 ]; then
        broken=$((broken + 1))
        verdict="DOES NOT BUILD: $(grep -m 1 'error' "$work/log")"
    elif [ -n "$verdict" ]; then
        caught=$((caught + 1))
        [ -z "$reason" ] || verdict="$verdict, though the list says that it survives"
    elif [ -n "$reason" ]; then
        explained=$((explained + 1))
        verdict="survives: $reason"
    else
        survived=$((survived + 1))
        verdict="SURVIVED: $(field "$name" breaks)"
    fi
    printf '%-32s %s\n' "$name" "$verdict"
}

# choose PATTERN...: keeps the names that match one of them.
choose() {
    [ $# -gt 0 ] || return 0
    while read -r name; do
        for pattern in "$@"; do
            case $name in $pattern) echo "$name"; break ;; esac
        done
    done <"$work/names" >"$work/chosen"
    mv "$work/chosen" "$work/names"
    [ -s "$work/names" ] || fail "no mutant is named like $*"
}

plant_all() {
    check_all || exit 2
    choose "$@"
    copy_tree
    cmake -S "$tree" -B "$build" -DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=OFF --log-level=WARNING >"$work/log" ||
        { cat "$work/log"; fail "CMake fails"; }
    while read -r name; do tests_of "$name"; done <"$work/names" >"$work/wanted"
    check_tests
    caught=0 explained=0 survived=0 broken=0
    while read -r name; do try "$name" </dev/null; done <"$work/names"
    echo "$(wc -l <"$work/names") mutants: $caught caught, $explained survive with a reason, $survived survive, $broken do not build"
    [ $broken = 0 ] || exit 2
    [ $survived = 0 ]
}

case ${1-} in
    --list)
        read_lists
        while read -r name; do printf '%-32s %s: %s\n' "$name" "$(field "$name" file)" "$(field "$name" breaks)"; done <"$work/names"
        ;;
    --check)
        read_lists
        check_all || exit 2
        echo "mutate: $(wc -l <"$work/names") mutants apply"
        ;;
    --help | -h) sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0" ;;
    -*) echo "usage: tools/mutate.sh [--list | --check | PATTERN...]" >&2; exit 2 ;;
    *)
        read_lists
        plant_all "$@"
        ;;
esac
