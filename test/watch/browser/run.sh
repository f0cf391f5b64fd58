#!/bin/sh
# Runs page.mjs with its packages, whose versions and sums package-lock.json has.
#
#   run.sh BUILD TRADEWIND DIRECTORY [PICTURES]
#
# Where Chromium, Node or npm is missing it says "skipped" and exits 0; with TRADEWIND_NO_SKIP set, as CI has it, 1.
set -eu

skip() {
    echo "page: skipped, $1"
    [ -z "${TRADEWIND_NO_SKIP:-}" ] && exit 0 || exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
for need in node npm; do command -v $need >/dev/null || skip "$need is not installed"; done
[ -n "$browser" ] || skip "Chromium is not installed"

place=$1/browser
mkdir -p "$place"
cp "$here/package.json" "$here/package-lock.json" "$here/page.mjs" "$place"
if ! cmp -s "$here/package-lock.json" "$place/installed"; then
    (cd "$place" && npm ci --silent --ignore-scripts --no-audit --no-fund >npm.log 2>&1) || skip "npm cannot install its packages"
    cp "$here/package-lock.json" "$place/installed"
fi
cd "$place"
shift
exec node page.mjs "$1" "$browser" "$2" ${3:+"$3"}
