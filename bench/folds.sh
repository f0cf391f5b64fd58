#!/bin/bash
# Ten equal folds of the reference LSTM side by side, in one process on one card, beside one fold alone.
#
#   bench/folds.sh TRADEWIND [EPOCHS [TIMES]]     default: 12 epochs, the median of 3
#
# A fold trains on 343,000 samples at batch 512. Seconds are those from the first epoch's start to the last epoch's end,
# of all folds together, by the logs of the runs: the start of the process is not part of it.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: bench/folds.sh TRADEWIND [EPOCHS [TIMES]]" >&2; exit 2; }
program=$(realpath "$1") epochs=${2:-12} times=${3:-3}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
cat >walk.yaml <<Y
data: {set: synthetic, synthetic: {bars: 364000}, windows: {fast: 50, slow: 20}}
model: {kind: lstm, hidden: {fast: 32, slow: 16}, dropout: 0.3}
train: {batch_size: 512, epochs: $epochs, patience: $epochs, seed: 1}
walk: {scheme: rolling, train: 343000, validation: 512, test: 512, step: 512}
Y

# walked NAME FOLDS: seconds of training.
walked() {
    "$program" walk walk.yaml --device cuda --json run.dir="$1" walk.folds="$2" walk.jobs="$2" >"$1.json" 2>"$1.err" ||
        { cat "$1.err" >&2; exit 1; }
    python3 - "$1" <<'PY'
import glob, sqlite3, sys
spans = []
for db in glob.glob(sys.argv[1] + "/fold_*/run.db"):
    c = sqlite3.connect(db)
    spans.append(c.execute("select min(finished - seconds), max(finished) from epochs").fetchone())
print(max(b for _, b in spans) - min(a for a, _ in spans))
PY
}

for i in $(seq "$times"); do
    walked "one$i" 1 >>one
    walked "ten$i" 10 >>ten
done
fold=$(basename one1/fold_*)
cmp "one1/$fold/best.safetensors" "ten1/$fold/best.safetensors"
echo "$fold: the same bits alone and beside nine others"
paste one ten | awk '{ r = $2 / $1; printf "one fold %.3f s, ten folds %.3f s: %.2f times\n", $1, $2, r; print r | "sort -n >ratios" }'
sed -n "$(((times + 1) / 2))p" ratios | xargs printf 'median %.2f times\n'
