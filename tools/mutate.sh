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
#   tests: test_metric test_skill binaries that should notice, the quickest first; NAME=VALUE sets a variable for those
#                                 behind it
#   survives: ...                 where no test can notice: why. Optional
#
# The copy and its build are in build-mutants and stay there, so that the next run builds little. A mutant is caught by
# a test that fails or runs longer than TRADEWIND_MUTANT_SECONDS (300). Exit status 1: a mutant survives without a
# reason; 2: the list is wrong (a text that is not found once, code that does not compile), or a test fails without any
# bug.
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

# Checks the lists against the sources; puts every record as a folder of fields into $work/mutant, and the names in
# order into $work/names.
read_lists() {
    mkdir "$work/mutant"
    : >"$work/names"
    find "$root/test" -name 'test_*.c' | sed 's|.*/||; s|\.c$||' >"$work/tests"
    awk -v to="$work" -v root="$root" '
        function complain(what) { printf "mutate: %s\n", what; bad = 1 }
        function put(key) { print value[name, key] >(to "/mutant/" name "/" key); close(to "/mutant/" name "/" key) }

        # How often a text occurs in a file; -1 where there is no such file.
        function occurrences(path, text,    line, at, n, got) {
            for (n = 0; (got = (getline line <path)) > 0;)
                for (; (at = index(line, text)) > 0; n++) line = substr(line, at + length(text))
            close(path)
            return got < 0 ? -1 : n
        }

        function check(    i, n, word, path) {
            n = split("file before after breaks tests", word, " ")
            for (i = 1; i <= n; i++)
                if (!((name, word[i]) in value) || (value[name, word[i]] == "" && word[i] != "after")) {
                    complain(name ": has no " word[i])
                    return
                }
            path = value[name, "file"]
            n = occurrences(root "/" path, value[name, "before"])
            if (n < 0) complain(name ": there is no " path)
            else if (n != 1) complain(name ": its text occurs " n " times in " path)
            if (value[name, "before"] == value[name, "after"]) complain(name ": changes nothing")
            n = split(value[name, "tests"], word, " ")
            for (i = 1; i <= n; i++)
                if (word[i] !~ /=/ && !(word[i] in test)) complain(name ": there is no test " word[i])
        }

        FILENAME == to "/tests" { test[$0] = 1; next }
        /^#/ || /^$/ { next }
        !match($0, /^(mutant|file|before|after|breaks|tests|survives):/) {
            complain(FILENAME ":" FNR ": no field: " $0)
            next
        }
        {
            key = substr($0, 1, RLENGTH - 1)
            text = substr($0, RLENGTH + 2)
            if (key == "mutant") {
                if (text !~ /^[a-z0-9_]+$/ || text in seen)
                    complain(FILENAME ":" FNR ": " text " is taken, or is no name")
                name = names[++count] = text
                seen[name] = 1
            } else {
                if ((name, key) in value) complain(FILENAME ":" FNR ": " name " has a second " key)
                value[name, key] = text
            }
        }
        END {
            for (i = 1; i <= count; i++) {
                name = names[i]
                check()
                if (bad) continue
                print name >(to "/names")
                system("mkdir " to "/mutant/" name)
                for (k in value)
                    if (split(k, part, SUBSEP) && part[1] == name) put(part[2])
            }
            exit bad
        }' "$work/tests" "$lists"/*.txt >&2 || exit 2
}

# field NAME KEY: the value; empty where it has none.
field() {
    [ ! -f "$work/mutant/$1/$2" ] || cat "$work/mutant/$1/$2"
}

# Writes a mutant's file, changed, to stdout.
changed() {
    BEFORE=$(field "$1" before) AFTER=$(field "$1" after) awk '
        { at = index($0, ENVIRON["BEFORE"]) }
        at { $0 = substr($0, 1, at - 1) ENVIRON["AFTER"] substr($0, at + length(ENVIRON["BEFORE"])) }
        { print }' "$root/$(field "$1" file)"
}

# A mutant's tests, a line each: the name, and the variables that are set for it.
runs_of() {
    set -- $(field "$1" tests)
    variables=
    for word; do
        case $word in
            *=*) variables="$variables $word" ;;
            *) echo "$word$variables" ;;
        esac
    done
}

# The files of the sources, built ones left out.
list_files() {
    cd "$root"
    git ls-files -co --exclude-standard 2>/dev/null || find . -path './build*' -prune -o -type f -print | sed 's|^\./||'
}

# Brings the copy up to date. Files that are the same keep their times, so that little is built. Data that tests look
# for beside the sources are beside the copy too.
copy_tree() {
    mkdir -p "$tree"
    (list_files) | LC_ALL=C sort >"$work/files"
    while read -r file; do
        [ -f "$root/$file" ] || continue
        cmp -s "$root/$file" "$tree/$file" && continue
        mkdir -p "$(dirname "$tree/$file")"
        cp "$root/$file" "$tree/$file"
    done <"$work/files"
    (cd "$tree" && find . -type f) | sed 's|^\./||' | LC_ALL=C sort >"$work/copied"
    LC_ALL=C comm -13 "$work/files" "$work/copied" | while read -r file; do rm "$tree/$file"; done
    [ ! -d "$root/../shared" ] || ln -sfn "$(cd "$root/../shared" && pwd)" "$home/shared"
}

# build_test NAME: its binary, and the program where the test runs that; the output is in $work/log.
build_test() {
    program=
    ! grep -qE 'TRADEWIND_BINARY|"cli/|"fault/' "$(find "$tree/test" -name "$1.c")" || program=tradewind
    cmake --build "$build" --parallel "$(nproc 2>/dev/null || echo 2)" --target $program "$1" >"$work/log" 2>&1
}

# run_test NAME [NAME=VALUE...]: the output is in $work/log.
run_test() {
    test=$1
    shift
    (cd "$build" && exec env "$@" timeout "$limit" "./$test") >"$work/log" 2>&1
}

# A test that has caught a bug passes without one, or what it catches would mean nothing: it is built and run on the
# sources as they are, once.
check_test() {
    ! grep -qxF "$1" "$work/sound" || return 0
    build_test "${1%% *}" || { cat "$work/log"; fail "the sources do not build"; }
    run_test $1 </dev/null || { cat "$work/log"; fail "$1 fails without a bug"; }
    echo "$1" >>"$work/sound"
}

# Builds and runs a planted mutant's tests one by one until one fails. The verdict is in $verdict, empty where it
# survives; $catcher is the test, empty where none has failed. False where the code does not compile.
run_tests() {
    verdict= catcher=
    runs_of "$name" >"$work/runs"
    while read -r run; do
        status=0
        build_test "${run%% *}" </dev/null || return 1
        { run_test $run </dev/null || status=$?; } 2>/dev/null # the shell's own word on a test that aborts
        [ $status != 0 ] || continue
        catcher=$run
        verdict="caught by ${run%% *}"
        [ $status != 124 ] || verdict="$verdict, which did not end"
        return 0
    done <"$work/runs"
}

# Plants one mutant, tells what came of it, and restores the file. The file is newer than what was built of it both
# times, so that it is built again.
try() {
    name=$1
    file=$(field "$name" file)
    changed "$name" >"$tree/$file"
    built=1
    run_tests || built=0
    cp "$root/$file" "$tree/$file"
    [ -z "$catcher" ] || check_test "$catcher"
    reason=$(field "$name" survives)
    if [ $built = 0 ]; then
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
    choose "$@"
    copy_tree
    generator=
    [ -f "$build/CMakeCache.txt" ] || ! command -v ninja >/dev/null || generator='-G Ninja'
    cmake $generator -S "$tree" -B "$build" -DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=OFF --log-level=WARNING >"$work/log" ||
        { cat "$work/log"; fail "CMake fails"; }
    : >"$work/sound"
    caught=0 explained=0 survived=0 broken=0
    while read -r name; do try "$name" </dev/null; done <"$work/names"
    echo "$((caught + explained + survived + broken)) mutants: $caught caught, $explained survive with a reason," \
        "$survived survive, $broken do not build"
    [ $broken = 0 ] || exit 2
    [ $survived = 0 ]
}

case ${1-} in
    --list)
        read_lists
        while read -r name; do
            printf '%-32s %s: %s\n' "$name" "$(field "$name" file)" "$(field "$name" breaks)"
        done <"$work/names"
        ;;
    --check)
        read_lists
        echo "mutate: $(wc -l <"$work/names") mutants apply"
        ;;
    --help | -h) sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0" ;;
    -*) echo "usage: tools/mutate.sh [--list | --check | PATTERN...]" >&2; exit 2 ;;
    *)
        read_lists
        plant_all "$@"
        ;;
esac
