#!/bin/sh
# Ten terminal views of one run: the processor time that they take together, and what the system's calls of one are.
#
#   bench/watchers.sh TRADEWIND RUN [SECONDS]     needs tmux; strace for the second part
#
# RUN may be a run that goes on, one that is idle, or one that has ended.
set -eu

[ $# -ge 2 ] || { echo "usage: bench/watchers.sh TRADEWIND RUN [SECONDS]" >&2; exit 2; }
program=$(realpath "$1") run=$(realpath "$2") seconds=${3:-20}
server=watchers-$$
tmp=$(mktemp -d)
trap 'tmux -L $server kill-server 2>"$tmp/why" || true; rm -rf "$tmp"' EXIT

# Ticks of the processor that a process has taken.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

all_ticks() {
    sum=0
    for pid in $(cat "$tmp"/pid.*); do sum=$((sum + $(ticks "$pid"))); done
    echo $sum
}

for i in 1 2 3 4 5 6 7 8 9 10; do
    tmux -L $server new-session -d -x 80 -y 24 \
        "LC_ALL=C.UTF-8 sh -c 'echo \$\$ >$tmp/pid.$i; exec \"$program\" watch \"$run\"'"
done
sleep 3
before=$(all_ticks)
sleep "$seconds"
after=$(all_ticks)
awk -v t=$((after - before)) -v s="$seconds" -v hz="$(getconf CLK_TCK)" \
    'BEGIN { printf "ten watchers: %.2f %% of a core over %d s\n", 100 * t / hz / s, s }'

command -v strace >"$tmp/found" || exit 0
pid=$(cat "$tmp/pid.1")
timeout "$seconds" strace -f -p "$pid" -o "$tmp/calls" 2>"$tmp/why" || true
echo "one of them in $seconds s:"
sed -E 's/^[0-9]+ +//; s/\(.*//' "$tmp/calls" | sort | uniq -c | sort -rn | head -12
echo "locks: $(grep -cE 'F_SETLK|F_OFD_SETLK|flock\(' "$tmp/calls" || true)," \
    "writes below the run: $(grep -E 'O_RDWR|O_WRONLY|O_CREAT' "$tmp/calls" | grep -cF "$run" || true)"
