#!/bin/sh
# Made the files beside it: `make.sh PROGRAM`, where PROGRAM is build/tradewind of commit 7a0ccf0 (gcc 12, Release) on a
# processor with AVX2. Needs sqlite3.
#
#   mlp/, lstm/        runs killed in their second epoch, with a checkpoint in the middle of it
#   mlp.end, lstm.end  best.safetensors as PROGRAM leaves it, by `train --resume`, and without having been killed
#   series.npz         a small dataset
set -eu
old=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TRADEWIND_WISDOM="$work/wisdom"

# killed NAME STEP DESCRIPTION
killed() {
    printf '%s\nrun: {dir: %s}\n' "$3" "$1" >"$1.yaml"
    "$old" train "$1.yaml" --isa avx2 --device cpu -q train.checkpoint_minutes=0 run.dir="$1-whole"
    "$old" train "$1.yaml" --isa avx2 --device cpu -q train.checkpoint_minutes=1e-6 train.keep_checkpoints=0 &
    while [ ! -e "$1/checkpoint_step_$2.safetensors" ]; do sleep 0.01; done
    kill -9 $!
    wait $! || true
    mv "$1/checkpoint_step_$2.safetensors" kept
    rm -f "$1"/checkpoint_* "$1/lock" "$1/training_log.txt"
    mv kept "$1/checkpoint_step_$2.safetensors"
    # Small: few of the rows that so many checkpoints left.
    sqlite3 "$1/run.db" "DELETE FROM steps WHERE step % 16; DELETE FROM events WHERE kind = 'checkpoint' AND step <> $2;
        PRAGMA wal_checkpoint(TRUNCATE); VACUUM" >/dev/null
    rm -rf "${here:?}/$1"
    cp -r "$1" "$here/$1"
    "$old" train "$1/config.yaml" --resume --isa avx2 --device cpu -q train.checkpoint_minutes=0
    cmp "$1/best.safetensors" "$1-whole/best.safetensors"
    cp "$1/best.safetensors" "$here/$1.end"
}

killed mlp 600 'data: {synthetic: {bars: 20000}, windows: {fast: 2, slow: 1}}
model: {kind: mlp, widths: 12-8}
train: {batch_size: 32, epochs: 3, metric: loss}'
killed lstm 70 'data: {synthetic: {bars: 4000}, windows: {fast: 8, slow: 4}}
model: {kind: lstm, hidden: {fast: 4, slow: 3}, projection: 4, head: 8}
train: {batch_size: 64, epochs: 3, metric: loss}'

awk 'BEGIN { print "id,V1,V2,V3,V4,V5,V6,V7,V8,V9,V10,V11,V12"
    for (i = 1; i <= 4; i++) { printf "S%d", i; for (k = 1; k <= 12; k++) printf ",%d", 10 * i + k * k % 7; print "" } }' >series.csv
"$old" import series.csv -o "$here/series.npz" --horizon 2 --history 4 -q
