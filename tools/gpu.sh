#!/bin/sh
# Runs the card's tests from a folder of built binaries. Fails where a test fails, and where there is no card.
#
#   tools/gpu.sh test FOLDER       operators, golden numbers, whole runs; the first three also from compute_75 PTX alone
#   tools/gpu.sh resume FOLDER     an LSTM's run that is killed again and again ends with the bits of one that is not
#   tools/gpu.sh sanitize FOLDER   operators under compute-sanitizer's memcheck, racecheck and initcheck
#
# FOLDER holds tradewind, tradewind-cuda.so and gpu_test_*, with shared libraries in FOLDER/lib where the machine lacks them.
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

# lstm DIR [OPTION...]: two hundred epochs of a fifth of a second at most. In place of the (sub)shell, to be killed as such.
lstm() {
    dir=$1
    shift
    exec "$folder/tradewind" train "$root/examples/quickstart.yaml" --device cuda --quiet "$@" run.dir="$dir" \
        data.synthetic.bars=400000 train.epochs=200 train.patience=200 train.checkpoint_minutes=0.005 \
        train.batch_size=3072
}

# What a run has learnt, epoch by epoch, without the times it took.
epochs() {
    grep -o 'epoch .* mcc [-0-9.]*' "$1/training_log.txt" | grep '^epoch *[0-9]*  loss' | sort -u
}

resumes_in() {
    runs=$1
    kills=0
    (lstm "$runs/whole") || return 1
    for wait in 2 2.7 1.6 3.1 2.3; do
        resume=
        [ $kills -eq 0 ] || resume=--resume
        lstm "$runs/killed" $resume >"$runs/out" 2>&1 &
        sleep "$wait"
        kill -KILL $! 2>/dev/null && kills=$((kills + 1))
        wait $! 2>/dev/null
    done
    (lstm "$runs/killed" --resume) || return 1
    epochs "$runs/whole" >"$runs/a"
    epochs "$runs/killed" >"$runs/b"
    echo "killed $kills times, resumed $(grep -c 'resum' "$runs/killed/training_log.txt") times, $(wc -l <"$runs/b") epochs"
    [ $kills -ge 2 ] && [ -s "$runs/a" ] && cmp "$runs/a" "$runs/b" &&
        cmp "$runs/whole/best.safetensors" "$runs/killed/best.safetensors"
}

resumes() {
    folder_of_runs=$(mktemp -d)
    resumes_in "$folder_of_runs"
    status=$?
    rm -rf "$folder_of_runs"
    return $status
}

test_all() {
    for name in meaning ops fuse golden card; do run "gpu_test_$name" "$folder/gpu_test_$name"; done
    run "a run killed and resumed" resumes
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
resume) run "a run killed and resumed" resumes ;;
sanitize) sanitize_all ;;
*) echo "gpu: unknown mode '$mode'; test, resume or sanitize" >&2; exit 2 ;;
esac
[ -z "$failed" ] || { printf 'failed:%s\n' "$failed"; exit 1; }
echo "$passed passed"
