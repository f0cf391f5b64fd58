#!/bin/sh
# Runs the card's tests from a folder of built binaries. Fails where a test fails, and where there is no card.
#
#   tools/gpu.sh test FOLDER       operators, golden numbers, agents, whole runs; all but whole runs also from compute_75
#                                  PTX alone
#   tools/gpu.sh resume FOLDER     an LSTM's run that is killed again and again ends with the bits of one that is not
#   tools/gpu.sh kills FOLDER      every kind of training, killed at random moments on the card (TRADEWIND_KILLS each, 5 if
#                                  not set), all kinds side by side: each ends in the bits of one that is not killed
#   tools/gpu.sh full FOLDER       another process takes what is left of the card's memory in the middle of a run: that
#                                  goes on, or ends with one line and goes on later, to the same bits
#   tools/gpu.sh sanitize FOLDER   operators under compute-sanitizer's memcheck, racecheck and initcheck, in parts that run
#                                  side by side on one card; a line for each tool and test with the count of its errors
#
# FOLDER holds tradewind, tradewind-cuda.so and gpu_test_*, for kills test_kills, with shared libraries in FOLDER/lib where
# the machine lacks them.
# TRADEWIND_TEST_SIZE limits the sizes that operators are tried at (1, 7, 33, 257); sanitize sets 33, for racecheck 7.
# TRADEWIND_TEST_DIR is the folder test/ where it does not lie beside tools/.
# TRADEWIND_SANITIZE_SECONDS is the most that one part may take (otherwise there is no limit): a part that is not through by
# then is told as NOT FINISHED, and so does not pass. TRADEWIND_SANITIZE_JOBS (15) is how many parts run at once, and
# TRADEWIND_SANITIZE_TOOLS and TRADEWIND_SANITIZE_TESTS name some of them ("memcheck", "ops fuse").
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
mode=${1:-}
folder=$(cd "${2:-/nonexistent}" 2>/dev/null && pwd) || {
    echo "gpu: no folder of binaries given; usage: tools/gpu.sh test|resume|kills|full|sanitize FOLDER" >&2
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
    start=$(date +%s)
    if "$@"; then
        passed=$((passed + 1))
        echo "--- $title: passed, $(($(date +%s) - start)) s"
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

# Each kind of command that trains, in a process of its own.
killed() {
    results=$(mktemp -d)
    for kind in train resume anew ensemble agent market models walk seeds agents; do
        (
            TRADEWIND_KILLS_ONLY=$kind TRADEWIND_KILLS=${TRADEWIND_KILLS:-5} TRADEWIND_CARD=$folder \
                "$folder/test_kills" >"$results/$kind" 2>&1 || { touch "$results/bad"; cat "$results/$kind"; }
        ) &
    done
    wait
    cat "$results"/* | grep 'all the same'
    cat "$results"/* | awk '/all the same/ { n += $2; b += $4 } END { print n + 0 " kills, " b + 0 " before the end" }'
    [ ! -e "$results/bad" ]
    status=$?
    rm -rf "$results"
    return $status
}

# Takes all memory of the card that is left, and gives it back after four seconds.
fill() {
    python3 - <<'PY'
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
context, device, at = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
size, taken = 1 << 36, 0
while size >= 1 << 20:
    if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)) == 0: taken += size
    else: size //= 2
print("%.1f GB taken by another process" % (taken / 2**30), flush=True)
time.sleep(4)
PY
}

filled_in() {
    runs=$1 status=0
    (lstm "$runs/whole") || return 1
    lstm "$runs/full" >"$runs/out" 2>"$runs/err" &
    sleep 2
    kill -0 $! 2>/dev/null || { echo "gpu: the run ended before the card was filled" >&2; return 1; }
    fill || return 1
    wait $! || status=$?
    echo "the run ended with status $status: $(cat "$runs/err")"
    [ $status = 0 ] || { [ $status = 1 ] && [ "$(wc -l <"$runs/err")" = 1 ] && (lstm "$runs/full" --resume); } || return 1
    cmp "$runs/whole/best.safetensors" "$runs/full/best.safetensors"
}

filled() {
    folder_of_runs=$(mktemp -d)
    filled_in "$folder_of_runs"
    status=$?
    rm -rf "$folder_of_runs"
    return $status
}

test_all() {
    for name in meaning ops fuse golden ppo_golden ppo_nets agent card card_equal card_curve card_many card_resume card_stream card_memory; do run "gpu_test_$name" "$folder/gpu_test_$name"; done
    run "a run killed and resumed" resumes
    run "kernels from compute_75 PTX" from_ptx
    for name in meaning ops fuse golden ppo_golden ppo_nets agent; do
        run "gpu_test_$name, from compute_75 PTX" env CUDA_FORCE_PTX_JIT=1 "$folder/gpu_test_$name"
    done
}

# A test's rows are dealt out to so many processes, about one each (no more than there are rows): the slowest row decides
# how long the whole takes.
parts_of() {
    case $1 in
    ops) echo 120 ;;
    *) echo 24 ;;
    esac
}

# sanitize_part RESULTS TOOL TEST PART: one process, whose output and exit status stay in RESULTS.
sanitize_part() {
    size=33
    [ "$2" != racecheck ] || size=7
    limit=
    [ -z "${TRADEWIND_SANITIZE_SECONDS:-}" ] || limit="timeout -k 10 $TRADEWIND_SANITIZE_SECONDS"
    env TRADEWIND_TEST_SIZE="${TRADEWIND_TEST_SIZE:-$size}" TRADEWIND_TEST_PART="$4/$(parts_of "$3")" \
        $limit "$sanitizer" --tool "$2" --error-exitcode 9 "$folder/gpu_test_$3" >"$1/$2.$3.$4.out" 2>&1
    echo $? >"$1/$2.$3.$4.status"
}

# Errors that the tool has counted in these outputs: "ERROR SUMMARY: 2 errors", or racecheck's "(2 errors, 0 warnings)".
errors_in() {
    cat "$@" | sed -n -e 's/.*ERROR SUMMARY: \([0-9]*\) error.*/\1/p' \
        -e 's/.*RACECHECK SUMMARY:.*(\([0-9]*\) error.*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}

# judge RESULTS TOOL TEST: one line, and what the parts that failed have said.
judge() {
    parts=$(parts_of "$3")
    late=0
    bad=
    part=0
    while [ $part -lt "$parts" ]; do
        status=$(cat "$1/$2.$3.$part.status" 2>/dev/null || echo lost)
        case $status in
        0) ;;
        124 | 137) late=$((late + 1)) ;;
        *) bad="$bad $part" ;;
        esac
        part=$((part + 1))
    done
    line="$2, gpu_test_$3: $(errors_in "$1/$2.$3".*.out) errors in $parts parts"
    [ $late = 0 ] || line="$line, $late of them NOT FINISHED (killed${TRADEWIND_SANITIZE_SECONDS:+ after $TRADEWIND_SANITIZE_SECONDS s})"
    [ -z "$bad" ] || line="$line, FAILED:$bad"
    echo "$line"
    for part in $bad; do
        echo "--- $2, gpu_test_$3, part $part of $parts"
        grep -E '=========|FAILED|ERROR' "$1/$2.$3.$part.out" | head -n 40
    done
    if [ $late = 0 ] && [ -z "$bad" ]; then
        passed=$((passed + 1))
    else
        failed="$failed
  $line"
    fi
}

sanitize_all() {
    results=$(mktemp -d)
    tools=${TRADEWIND_SANITIZE_TOOLS:-memcheck racecheck initcheck}
    tests=${TRADEWIND_SANITIZE_TESTS:-ops meaning fuse}
    began=$(date +%s)
    for name in $tests; do
        for tool in $tools; do
            part=0
            while [ $part -lt "$(parts_of "$name")" ]; do
                echo "$results $tool $name $part"
                part=$((part + 1))
            done
        done
    done | xargs -P "${TRADEWIND_SANITIZE_JOBS:-15}" -L 1 "$0" sanitize-part "$folder"
    for name in $tests; do
        for tool in $tools; do judge "$results" "$tool" "$name"; done
    done
    echo "$(($(date +%s) - began)) s"
    rm -rf "$results"
}

if [ "$mode" = sanitize ] || [ "$mode" = sanitize-part ]; then
    sanitizer=$(PATH="$PATH:/usr/local/cuda/bin" command -v compute-sanitizer) || {
        echo "gpu: compute-sanitizer was not found; it comes with the CUDA toolkit" >&2
        exit 1
    }
fi
if [ "$mode" = sanitize-part ]; then # one of those that `sanitize` starts
    shift 2
    sanitize_part "$@"
    exit 0
fi
"$folder/gpu_test_card" --card || {
    echo "gpu: nothing was tested" >&2
    exit 1
}
case $mode in
test) test_all ;;
resume) run "a run killed and resumed" resumes ;;
kills) run "training killed at random moments" killed ;;
full) run "a card that another process fills" filled ;;
sanitize) sanitize_all ;;
*) echo "gpu: unknown mode '$mode'; test, resume, kills, full or sanitize" >&2; exit 2 ;;
esac
[ -z "$failed" ] || { printf 'failed:%s\n' "$failed"; exit 1; }
echo "$passed passed"
