#!/bin/sh
# Starts from PTX on a card, the first and the second time: does the driver find again what it has compiled?
#
#   bench/ptx_start.sh [PROGRAM [PTX_PROGRAM]]      (default: build/tradewind; five minutes at most)
#
# PROGRAM's machine code is passed over with CUDA_FORCE_PTX_JIT=1. PTX_PROGRAM has none for the card and needs no such
# word: `make CARDS=75-virtual BUILD=build-ptx` builds it, build-ptx/tradewind. A start is one step of training. Rows with
# a cache of their own begin with an empty one, in a temporary folder that is removed; the user's is used by its own row
# alone. Read it so:
#
#   second as slow as first, own cache empty    the driver keeps nothing: forced PTX passes the cache over where
#                                               PTX_PROGRAM's row is fast, else the driver's cache is off
#   second fast but in the user's row           HOME cannot be written; CUDA_CACHE_PATH names another folder
#   second fast with a large cache alone        CUDA_CACHE_MAXSIZE, which the plug-in sets to 1 GB, is too small
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-$root/build/tradewind}
ptx_program=${2:-}
[ -x "$program" ] || { echo "ptx_start: $program is not there; run make first" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM

# Seconds of one start with the variables VARIABLE=VALUE..., or "failed".
start() {
    began=$(date +%s%N)
    if timeout 100 env "$@" train "$root/examples/quickstart.yaml" --device cuda --quiet run.dir="$tmp/run" \
        data.synthetic.bars=5000 train.steps=1 train.epochs=1 >"$tmp/out" 2>&1; then
        awk -v ns="$(($(date +%s%N) - began))" 'BEGIN { printf "%.1f", ns / 1e9 }'
    else
        echo failed
    fi
    rm -rf "$tmp/run" "$tmp"/run.*
}

# row TITLE VARIABLE=VALUE... PROGRAM: two starts, and what lies in the cache behind each.
row() {
    title=$1
    shift
    rm -rf "$tmp/cache"
    mkdir "$tmp/cache"
    first=$(start "$@")
    case " $* " in *" $own "*) kept=$(du -sk "$tmp/cache" | cut -f1) ;; *) kept=- ;; esac
    second=$(start "$@")
    printf '%-44s %8s %8s %10s\n' "$title" "$first" "$second" "$kept"
    [ "$first$second" = "${first#failed}${second#failed}" ] || head -n 2 "$tmp/out"
}

nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader 2>&1 | head -n 4
env | grep '^CUDA_' || true
users=${CUDA_CACHE_PATH:-${HOME:-}/.nv/ComputeCache}
echo "the user's cache: $users, $(du -sk "$users" 2>/dev/null | cut -f1 || true) KB, $([ -w "$users" ] || [ -w "${HOME:-/none}" ] && echo writable || echo 'NOT writable')"
own=CUDA_CACHE_PATH=$tmp/cache
forced=CUDA_FORCE_PTX_JIT=1
printf '%-44s %8s %8s %10s\n' "" "first s" "second s" "cache KB"
row "machine code" "$program"
row "forced PTX, the user's cache" $forced "$program"
row "forced PTX" $forced "$own" "$program"
row "forced PTX, 4 GB" $forced "$own" CUDA_CACHE_MAXSIZE=4294967295 "$program"
row "forced PTX, loaded at once" $forced "$own" CUDA_MODULE_LOADING=EAGER "$program"
[ -z "$ptx_program" ] || row "PTX alone" "$own" "$ptx_program"
[ -z "$ptx_program" ] || row "PTX alone, no cache" "$own" CUDA_CACHE_DISABLE=1 "$ptx_program"
