#!/bin/sh
# Training from a file of windows that is larger than the card may use, beside the rate at which the file can be copied
# there; then the same set folded into series, which lies on the card.
#
#   bench/stream.sh FOLDER [GB] [PROGRAM] [DEVICE] [LIMIT] [key=value...]     (8, build/tradewind, cuda, 3)
#
# GB and LIMIT (gpu_optimization.max_memory_gb) are 2^30 bytes; keys are for both trainings. Files go to FOLDER, which has
# room for them and whose files stay in the system's cache, and are removed. Needs python3, no packages. With DEVICE cpu
# there is no limit; a small GB shows that the script works.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '2,9s/^#  *//p' "$0"; exit 2; }
gb=${2:-8}
program=$(realpath "${3:-$here/../build/tradewind}")
device=${4:-cuda}
limit=${5:-3}
to=$1
if [ $# -gt 5 ]; then shift 5; else set --; fi
mkdir -p "$to"
folder=$(mktemp -d "$(realpath "$to")/tradewind-stream.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# A number of the lines of JSON on stdin in which KEY is VALUE: of a single line, or the median of all but the first.
pick() { # KEY VALUE NUMBER
    python3 -c '
import json, statistics, sys
key, value, number = sys.argv[1:]
lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
found = [l[number] for l in lines if number in l and (not value or str(l.get(key)) == value)]
print(statistics.median(found[1:] or found) if isinstance(found[0], (int, float)) else "unknown")' "$@"
}
line() { printf '%-52s %s\n' "$1" "$2"; }
rate() { python3 -c 'import sys; s, b = map(float, sys.argv[1:]); print("%.2f GB/s, %.2f million samples/s" % (s * b / 1e9, s / 1e6))' "$@"; }
share() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); print("%.1f %%" % (100 * a / b))' "$@"; }
seconds() { date +%s; }

began=$(seconds)
samples=$(python3 -c 'import sys; print(int(float(sys.argv[1]) * 2**30 / 3904))' "$gb")
python3 "$here/data.py" windows windows.npz "$samples"
line "windows 50x15, 20x8, vector 64, label" "$(stat -c %s windows.npz) bytes, $samples samples, made in $(($(seconds) - began)) s"

cat >run.yaml <<END
data: {set: windows.npz, split: {train: 0.97, validation: 0.02, embargo: 0}}
model: {kind: lstm, hidden: {fast: 32, slow: 16}, dropout: 0.3}
train: {batch_size: 3072, epochs: 5, patience: 99}
run: {dir: streamed}
END
if [ "$device" = cpu ]; then
    place=data.residency=host
    set -- train.epochs=2 "$@"
else
    place=data.residency=auto
    set -- gpu_optimization.max_memory_gb="$limit" "$@"
fi

"$program" bench copy --data windows.npz --device "$device" --no-peer --json >copy.json
bytes=$(python3 -c 'import json; l = json.loads(open("copy.json").readline()); print(l["gb_per_s"] * 1e9 / l["samples_per_s"])')
file=$(pick variant file samples_per_s <copy.json)
line "from pinned memory to the device" "$(rate "$(pick variant pinned samples_per_s <copy.json)" "$bytes")"
line "from the file to the device, $(pick variant file threads <copy.json) threads" "$(rate "$file" "$bytes")"
line "shuffled batches to the device, $(pick variant loader threads <copy.json) threads" \
    "$(rate "$(pick variant loader samples_per_s <copy.json)" "$bytes")"

"$program" plan run.yaml --device "$device" "$place" "$@" | sed -n 's/^\(data\|memory\|limit\|loader\) /  &/p'
"$program" train run.yaml --device "$device" --json "$place" "$@" >streamed.json
streamed=$(pick "" "" samples_per_s <streamed.json)
line "training, streamed" "$(rate "$streamed" "$bytes"), $(share "$streamed" "$file") of the file's rate"
line "  what the card's monitor counts, in bytes" "$(pick "" "" monitor_bytes <streamed.json)"

then=$(seconds)
"$program" import windows.npz -o set.npz -q >/dev/null
line "folded into series" "$(stat -c %s set.npz) bytes, in $(($(seconds) - then)) s"
"$program" plan run.yaml --device "$device" data.set=set.npz "$@" | sed -n 's/^\(data\|memory\|limit\|loader\) /  &/p'
"$program" train run.yaml --device "$device" --json data.set=set.npz run.dir=folded "$@" >folded.json
folded=$(pick "" "" samples_per_s <folded.json)
line "training, folded" "$(rate "$folded" "$bytes") of windows, $(python3 -c 'import sys; print("%.2f" % (float(sys.argv[1]) / float(sys.argv[2])))' "$folded" "$streamed") times streamed"
if [ "$device" != cpu ]; then
    precision=$(sed -n 's/^precision: //p' folded/plan.yaml)
    "$program" bench lstm --device "$device" --no-peer --json --precision "$precision" >bench.json
    best=$(pick case lstm samples_per_s <bench.json)
    line "  beside bench lstm, $precision" "$(share "$folded" "$best") of $(python3 -c 'import sys; print("%.2f" % (float(sys.argv[1]) / 1e6))' "$best") million samples/s"
fi
line "all of it" "$(($(seconds) - began)) s"
