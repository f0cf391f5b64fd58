#!/bin/bash
# The calls of the system that a run makes, alone and with twelve watchers: six `watch --once` in loops, a terminal view
# that is stopped, the server of the page with three pages, one of which reads nothing, and TensorBoard's writer. Exits
# 1 where one kind of call differs, a lock was not to be had at once, or a watcher saw nothing.
#
#   bench/watched_run.sh BUILD [EPOCHS]      needs strace, tmux, and a build with tests, for its fault_shim.so
#
# The run writes by the clock: its clock is one that goes by readings (FAULT_CLOCK in test/fault/shim.c), so that the
# nth call is the same call in every run. The monitor, a thread that sleeps by the real clock, is off. Not compared:
# futex and sched_yield, whose calls depend on which of two threads comes first.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: bench/watched_run.sh BUILD [EPOCHS]" >&2; exit 2; }
for need in strace tmux; do
    command -v $need >/dev/null || { echo "skipped: $need is not installed"; exit 0; }
done
strace -o /dev/null true 2>/dev/null || { echo "skipped: strace may not look on here"; exit 0; }
build=$(realpath "$1") epochs=${2:-40}
examples=$(realpath "$(dirname "$0")/../examples")
tmp=$(mktemp -d)
server=watched-$$
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    tmux -L $server kill-server 2>/dev/null || true
    wait
    rm -rf "$tmp"
}
trap finish EXIT
cd "$tmp"

# train NAME: the run, with each call in the file NAME.calls.
train() {
    mkdir -p runs/one # views come before it
    strace -f -o "$1.calls" -E LD_PRELOAD="$build/fault_shim.so" -E FAULT_CLOCK=2000 "$build/tradewind" train \
        "$examples/quickstart.yaml" -q --device cpu --threads 1 run.dir=runs/one data.synthetic.bars=8000 \
        train.epochs="$epochs" train.patience="$epochs" gpu_optimization.memory_monitoring=false
    mv runs/one "$1"
}

looks() { while :; do "$build/tradewind" watch --once runs/one >>"looks.$1" 2>&1 || true; sleep 0.2; done; }

# page N: an open page: the stream of events; the third one never reads. In place of the subshell, to be killed as such.
page() {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n' >&3
    if [ "$1" = 3 ]; then exec sleep 600; else exec cat <&3 >"page.$1"; fi
}

start_watchers() {
    mkdir -p runs/one
    for i in 1 2 3 4 5 6; do looks $i & pids+=($!); done
    tmux -L $server new-session -d -x 80 -y 24 "echo \$\$ >view.pid; exec $build/tradewind watch runs/one"
    "$build/tradewind" watch runs --web 0 --json >url & pids+=($!)
    while ! [ -s url ] || ! [ -s view.pid ]; do sleep 0.1; done
    port=$(sed -E 's/.*:([0-9]+)\/".*/\1/' url)
    for i in 1 2 3; do page $i & pids+=($!); done
    { while ! "$build/tradewind" watch runs/one --tensorboard; do sleep 0.1; done >board 2>&1; } & pids+=($!)
    { sleep 3; kill -STOP "$(cat view.pid)"; } &
}

# counts NAME: "CALL COUNT" of each kind; the second half of a call that was interrupted is none.
counts() {
    sed -E 's/^[0-9]+ +//; /^<\.\.\./d; /^[+-]/d; s/\(.*//' "$1.calls" | grep -vxE 'futex|sched_yield' | sort | uniq -c | awk '{ print $2, $1 }'
}

fail() { echo "watched_run: $*"; failed=1; }

failed=0
train alone
start_watchers
train watched
counts alone >alone.counts
counts watched >watched.counts
echo "| call | alone | watched |"
echo "|---|---|---|"
join -a 1 -a 2 -e 0 -o 0,1.2,2.2 alone.counts watched.counts | awk '{ print "| " $1 " | " $2 " | " $3 " |"; a += $2; b += $3 } END { print "| all | " a " | " b " |" }'
cmp -s alone.counts watched.counts || fail "the run makes other calls where it is watched"
for name in alone watched; do
    busy=$(grep -cE 'fcntl\(.*= -1 E(AGAIN|ACCES|INTR)' $name.calls || true)
    [ "$busy" = 0 ] || fail "$name: $busy locks were not to be had at once"
done
cmp -s alone/best.safetensors watched/best.safetensors || fail "the weights differ"
echo "looks $(cat looks.* | grep -c 'epoch' || true), events $(cat page.* | grep -c '^event: run' || true), TensorBoard file $(du -b watched/events.out.tfevents.* | cut -f 1 || echo 0) bytes"
[ "$(cat looks.* | grep -oE 'epoch +[0-9]+ of' | sort -u | wc -l)" -ge 3 ] || fail "the looks saw no epoch pass"
grep -q '^event: run' page.1 || fail "the page was told nothing"
[ -s "$(echo watched/events.out.tfevents.*)" ] || fail "TensorBoard's writer saw nothing"
exit $failed
