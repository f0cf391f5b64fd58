#!/bin/sh
# Runs the card's tests from a folder of built binaries. Fails where a test fails, and where there is no card.
#
#   tools/gpu.sh test FOLDER       operators, golden numbers, whole runs; the first three also from compute_75 PTX alone
#   tools/gpu.sh sanitize FOLDER   operators under compute-sanitizer's memcheck, racecheck and initcheck
#
# FOLDER holds tradewind-cuda.so and gpu_test_*, with shared libraries in FOLDER/lib where the machine lacks them.
# TRADEWIND_TEST_SIZE limits the sizes that operators are tried at (1, 7, 33, 257); sanitize sets 33, for racecheck 7.
# TRADEWIND_TEST_DIR is the folder test/ where it does not lie beside tools/.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
mode=${1:-}
folder=$(cd "${2:-/nonexistent}" 2>/dev/null && pwd) || {
    echo "gpu: no folder of binaries given; usage: tools/gpu.sh test|sanitize FOLDER" >&2
    exit 2
}
export TRADEWIND_TEST_DIR="${TRADEWIND_TEST_DIR:-$root/test}"
[ ! -d "$folder/lib" ] || export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

passed=0
failed=

# run TITLE COMMAND...
run() {
    title=$1
    shift
    echo "=== $title"
    if "$@"; then
        passed=$((passed + 1))
        echo "--- $title: passed"
    else
        failed="$failed
  $title"
        echo "--- $title: FAILED"
    fi
}

# The driver must have compiled the kernels from compute_75 PTX, or the card is a Turing and has to.
from_ptx() {
    text=$(CUDA_FORCE_PTX_JIT=1 "$folder/gpu_test_card" --card) || return 1
    echo "$text"
    case $text in *compute_75* | *sm_75*) return 0 ;; esac
    echo "gpu: the driver did not use the compute_75 PTX" >&2
    return 1
}

test_all() {
    for name in meaning ops fuse golden card; do run "gpu_test_$name" "$folder/gpu_test_$name"; done
    run "kernels from compute_75 PTX" from_ptx
    for name in meaning ops fuse golden; do
        run "gpu_test_$name, from compute_75 PTX" env CUDA_FORCE_PTX_JIT=1 "$folder/gpu_test_$name"
    done
}

sanitize_all() {
    sanitizer=$(PATH="$PATH:/usr/local/cuda/bin" command -v compute-sanitizer) || {
        echo "gpu: compute-sanitizer was not found; it comes with the CUDA toolkit" >&2
        exit 1
    }
    for tool in memcheck racecheck initcheck; do
        size=33
        [ $tool != racecheck ] || size=7
        for name in meaning ops fuse; do
            run "$tool, gpu_test_$name" env TRADEWIND_TEST_SIZE="${TRADEWIND_TEST_SIZE:-$size}" \
                "$sanitizer" --tool $tool --error-exitcode 9 "$folder/gpu_test_$name"
        done
    done
}

"$folder/gpu_test_card" --card || {
    echo "gpu: nothing was tested" >&2
    exit 1
}
case $mode in
test) test_all ;;
sanitize) sanitize_all ;;
*) echo "gpu: unknown mode '$mode'; test or sanitize" >&2; exit 2 ;;
esac
[ -z "$failed" ] || { printf 'failed:%s\n' "$failed"; exit 1; }
echo "$passed passed"
