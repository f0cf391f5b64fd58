#!/bin/sh
# Makes doc/watch_page.png, the picture of `tradewind watch --web`: trains three runs, one of which still goes on, and takes
# a picture of the page in headless Chromium.
#
#   tools/watch_picture.sh [BUILD]     (default: build)
#
# It needs Chromium, Node and npm.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build}" && pwd)
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
work=$(mktemp -d)
started=
trap 'for pid in $started; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT

place=$build/browser
mkdir -p "$place"
cp "$root"/test/watch/browser/package*.json "$root"/test/watch/browser/picture.mjs "$place"
(cd "$place" && npm ci --silent --ignore-scripts --no-audit --no-fund)

cd "$work"
train() { "$build/tradewind" train "$root/examples/quickstart.yaml" -q "$@"; }
train run.dir=runs/first train.epochs=8
train run.dir=runs/slower train.epochs=10 train.optimizer.lr=5.0e-4 train.seed=2
train run.dir=runs/gold train.epochs=40 train.patience=40 train.seed=3 &
started=$!
sleep 45
"$build/tradewind" watch runs --web 0 --json >url &
started="$started $!"
while ! [ -s url ]; do sleep 0.2; done
cd "$place"
node picture.mjs "$(sed -E 's/.*"url":"([^"]*)".*/\1/' "$work/url")" "$browser" "$root/doc/watch_page.png" gold
ls -l "$root/doc/watch_page.png"
