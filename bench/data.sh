#!/bin/sh
# Times and memory of imports, datasets and training on them, at the size of the reference job.
#
#   bench/data.sh [PROGRAM] [SAMPLES] [BARS]     (build/tradewind, 490000, 1000000)
#
# Files go to a temporary folder (about 3 GB at the full size) and are removed. Needs python3, no packages.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$here/../build/tradewind}")
samples=${2:-490000}
bars=${3:-1000000}
folder=$(mktemp -d "${TMPDIR:-/tmp}/tradewind-data.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

tool() { python3 "$here/data.py" "$@"; }
size() { echo "$(($(stat -c %s "$1") / 100000))" | sed 's/\(.*\)\(.\)$/\1.\2 MB/'; }
mapped() { "$program" inspect "$1" | sed -n '1s/.*mapped in \([0-9.]* ms\).*/\1/p'; }
line() { printf '%-44s %s\n' "$1" "$2"; }

tool windows stored.npz "$samples"
line "windows, stored" "$(size stored.npz)"
line "  import" "$(tool watch "$program" import stored.npz -o set.npz)"
line "  dataset in f32" "$(size set.npz), mapped in $(mapped set.npz)"
line "  import --types compact" "$(tool watch "$program" import stored.npz -o compact.npz --types compact)"
line "  dataset in compact types" "$(size compact.npz), mapped in $(mapped compact.npz)"

printf 'data: {set: set.npz}\ntrain: {epochs: 1, batch_size: 512}\nrun: {dir: run}\n' >run.yaml
line "  training an epoch, folded, micro-batch 512" "$(tool watch "$program" train run.yaml --device cpu)"
line "  the same, compact" "$(tool watch "$program" train run.yaml --device cpu data.set=compact.npz)"
line "  the same, windows where they lie" "$(tool watch "$program" train run.yaml --device cpu data.set=stored.npz)"
rm -f stored.npz

tool windows stored.npz "$samples" deflate
line "windows, deflated" "$(size stored.npz)"
line "  import" "$(tool watch "$program" import stored.npz -o set2.npz)"
cmp set.npz set2.npz && line "  dataset" "the same bytes" || line "  dataset" "other bytes: a mistake"
rm -f stored.npz set2.npz

five=$((samples + 2740)) # what warms up is left out
tool bars bars.csv "$five" 300
line "five-minute bars" "$(size bars.csv), $five bars"
for types in f32 compact; do
    line "  import --frames 1h --types $types" "$(tool watch "$program" import bars.csv -o bars.npz --frames 1h --types $types)"
    line "  dataset of $("$program" inspect bars.npz --json | sed -n 's/.*"samples": *\([0-9]*\).*/\1/p' | head -n 1) samples" "$(size bars.npz), mapped in $(mapped bars.npz)"
    line "  training an epoch, micro-batch 512" "$(tool watch "$program" train run.yaml --device cpu data.set=bars.npz)"
done

tool bars bars.csv "$bars"
line "one-minute bars" "$(size bars.csv), $bars bars"
line "  import --frames 5m,1h" "$(tool watch "$program" import bars.csv -o bars.npz --frames 5m,1h)"
line "  dataset in f32" "$(size bars.npz), mapped in $(mapped bars.npz)"
line "  import, compact" "$(tool watch "$program" import bars.csv -o bars.npz --frames 5m,1h --types compact)"
line "  dataset in compact types" "$(size bars.npz), mapped in $(mapped bars.npz)"
features=$(sed -n 's/^FEATURE(\([a-z0-9_]*\),.*/\1/p' "$here/../src/data/feature.def" | paste -sd,)
line "  import, the whole catalogue in every frame" "$(tool watch "$program" import bars.csv -o bars.npz --frames 5m,1h \
    --features "fast=$features" "slow=$features" "slower=$features")"
line "  dataset in f32" "$(size bars.npz), mapped in $(mapped bars.npz)"
