#!/bin/sh
# Checks every #include of src/ and test/ against the layers: prints the lines that go against them and exits 1.
#
#   tools/layers.sh               checks this tree
#   tools/layers.sh --self-test   plants mistakes in a copy and fails unless each one is found
#
# It also wants: paths from src/, a .c file's own header first, no header that only includes others, and the headers
# that are one folder's own business used by nobody else, and no open_memstream in src/, which leaves out what it has no
# memory for and tells nobody (base/text.h does). It does not expand macros.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)

check() {
    (cd "$1" && find src test -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) | LC_ALL=C sort) |
        awk -v root="$1" '
        # A folder of src/ and the folders it may include besides itself.
        function layer(name, others,    n, i, part) {
            known[name] = allowed[name, name] = 1
            n = split(others, part, " ")
            for (i = 1; i <= n; i++) allowed[name, part[i]] = 1
        }
        # A header, or all others of a folder ("ops/*"), and the folders that may include it.
        function only(header, others) { private[++privates] = header; users[privates] = " " others " " }

        BEGIN {
            train = "model ops graph env data run base"
            layer("base", "")
            layer("env", "base")
            layer("data", "base")
            layer("run", "base")
            layer("graph", "base")
            layer("ops", "graph env base")
            layer("cpu", "ops graph env base")
            layer("cuda", "ops graph env base")
            layer("model", "ops graph base")
            layer("train", train)
            layer("rl", "train " train)
            layer("backtest", "train " train)
            layer("task", "backtest rl train " train)
            layer("live", "task backtest rl train " train)
            layer("watch", "backtest run base")
            layer("cli", "live watch task backtest rl train cpu cuda " train)

            # The lines of a guard, which are no content.
            guard = "^[ \\t]*#[ \\t]*(ifndef|define [A-Z_0-9]+_H$|endif|pragma once)"

            split("tree keys words", part, " "); for (i in part) only("base/config_" part[i] ".h", "base")
            only("base/config_near.h", "base cli")
            only("graph/internal.h", "graph")
            only("ops/ops.h", "*")
            only("ops/ops.def", "*")
            only("ops/attr.h", "*")
            only("ops/schedule.h", "ops cpu cuda train test")
            only("ops/*", "ops cpu cuda test")
        }

        function complain(what) { printf "%s:%d: %s\n", file, line, what; bad = 1 }

        # The first rule about a header decides.
        function may_use(from, header, to,    i) {
            for (i = 1; i <= privates; i++)
                if (private[i] == header || private[i] == to "/*")
                    return users[i] == " * " || index(users[i], " " from " ") > 0
            return 1
        }

        function check_include(header, angled,    to) {
            to = header
            if (!sub(/\/.*/, "", to)) to = ""
            if (angled && header ~ /^(cuda|cublas|cudnn|nccl)/ && from != "cuda" && from != "test")
                complain("only src/cuda/ may include <" header ">")
            if (angled && !(to in known && (("src/" header) in exists))) return
            projects++
            if (from == "test" && ("test/" header) in exists) return
            if (to == "" || header ~ /^\.|\/\.\.?\//) complain("write the path of \"" header "\" from src/")
            else if (!(to in known)) complain("\"" header "\" is in no layer")
            else if (from != "test" && !((from, to) in allowed))
                complain(from " may not include " to ": \"" header "\"")
            else if (!may_use(from, header, to)) complain(from " may not include the private header \"" header "\"")
        }

        function check_file(    text, first, code, comment, own, mark) {
            from = file
            sub(/^src\//, "", from)
            if (!sub(/\/.*/, "", from)) from = ""
            if (file ~ /^test\//) from = "test"
            line = 1
            if (from == "") complain("files of src/ belong in a folder")
            else if (from != "test" && !(from in known)) complain("src/" from " is not in the table of tools/layers.sh")
            own = file
            if (!sub(/\.(c|cu)$/, ".h", own) || !(own in exists)) own = ""
            sub(/^(src|test)\//, "", own)
            line = first = code = comment = projects = 0
            while ((getline text < (root "/" file)) > 0) {
                line++
                if (text ~ /^[ \t]*#[ \t]*include[ \t]*["<]/) {
                    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
                    mark = substr(text, 1, 1)
                    text = substr(text, 2)
                    sub(/[">].*/, "", text)
                    if (!first && own != "" && text != own) complain("its own header, \"" own "\", comes first")
                    first = 1
                    check_include(text, mark == "<")
                } else if (text ~ /open_memstream *\(/ && from != "test") {
                    complain("print into memory with base/text.h, which tells where memory is short")
                } else if (text ~ /^[ \t]*\/\*/) comment = text !~ /\*\//
                else if (comment) comment = text !~ /\*\//
                else if (text !~ /^[ \t]*(\/\/.*)?$/ && text !~ guard) code = 1
            }
            close(root "/" file)
            if (file ~ /\.h$/ && !code && projects > 1) { line = 1; complain("a header that only includes others") }
        }

        { files[NR] = $0; exists[$0] = 1 }
        END {
            for (n = 1; n <= NR; n++) { file = files[n]; check_file() }
            exit bad
        }'
}

# plant FILE TEXT EXPECTED: with TEXT put at the head of FILE in the copy, the check must fail and say EXPECTED.
plant() {
    mkdir -p "$(dirname "$copy/$1")"
    [ ! -f "$copy/$1" ] || cp "$copy/$1" "$copy/saved"
    { printf '%s\n' "$2"; [ ! -f "$copy/saved" ] || cat "$copy/saved"; } >"$copy/$1"
    if said=$(check "$copy"); then
        echo "layers: self-test: '$2' in $1 was not found"
        failed=1
    elif ! printf '%s\n' "$said" | grep -qF "$1:1: $3"; then
        printf "layers: self-test: '%s' in %s was expected to say '%s', not:\n%s\n" "$2" "$1" "$3" "$said"
        failed=1
    fi
    rm "$copy/$1"
    [ ! -f "$copy/saved" ] || mv "$copy/saved" "$copy/$1"
}

self_test() {
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    failed=0
    cp -R "$root/src" "$root/test" "$copy"
    check "$copy" || { echo "layers: self-test: the tree itself is not clean"; failed=1; }
    plant src/base/arena.c '#include "graph/graph.h"' 'its own header'
    plant src/base/zz.c '#include "graph/graph.h"' 'base may not include graph'
    plant src/base/zz.c '  # include <graph/graph.h>' 'base may not include graph'
    plant src/graph/graph.h '#include "ops/ops.h"' 'graph may not include ops'
    plant src/graph/zz.cu '#include "cpu/cpu.h"' 'graph may not include cpu'
    plant src/data/zz.c '#include "run/run.h"' 'data may not include run'
    plant src/model/zz.c '#include "train/trainer.h"' 'model may not include train'
    plant src/model/zz.c '#include "ops/op.h"' 'model may not include the private header'
    plant src/train/zz.c '#include "cpu/cpu.h"' 'train may not include cpu'
    plant src/train/zz.c '#include "graph/internal.h"' 'train may not include the private header'
    plant src/task/zz.c '#include "cli/cli.h"' 'task may not include cli'
    plant src/task/zz.c '#include "cpu/cpu.h"' 'task may not include cpu'
    plant src/live/zz.c '#include "watch/watch.h"' 'live may not include watch'
    plant src/train/zz.c '#include "task/chosen.h"' 'train may not include task'
    plant src/cli/zz.c '#include "ops/loss.h"' 'cli may not include the private header'
    plant src/cli/zz.c '#include <cuda_runtime.h>' 'only src/cuda/'
    plant src/cli/zz.c '#include "../base/err.h"' 'write the path'
    plant src/cli/zz.c '#include "err.h"' 'write the path'
    plant src/nowhere/zz.c '#include "base/err.h"' 'src/nowhere is not in the table'
    plant src/zz.h '' 'files of src/ belong in a folder'
    plant test/base/test_zz.c '#include "graph/internal.h"' 'test may not include the private header'
    plant src/cli/zz.c 'FILE *f = open_memstream(&text, &bytes);' 'print into memory with base/text.h'
    plant src/base/zz.h '#include "base/err.h"
#include "base/arena.h"' 'a header that only includes others'
    [ $failed = 1 ] || echo "layers: self-test passed"
    return $failed
}

case ${1-} in
    '') check "$root" || { echo "layers: against the layers of src/; see the table in tools/layers.sh" >&2; exit 1; } ;;
    --self-test) self_test ;;
    *) echo "usage: tools/layers.sh [--self-test]" >&2; exit 2 ;;
esac
