#!/bin/sh
# Opens a page of `tradewind report` in headless Chromium, at 390 and 1,400 pixels and in print, and exits 1 where the
# browser's console has a message, the page is wider than the window, or a picture or the print is not made.
#
#   tools/page.sh PAGE.html [DIRECTORY]   leaves the pictures in DIRECTORY, to be looked at (default: nowhere)
#   tools/page.sh --self-test             fails unless faulty pages are found
#
# Without Chromium it says "skipped" and exits 0.
set -eu

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "page: skipped, Chromium is not installed"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sandbox=
[ "$(id -u)" != 0 ] || sandbox=--no-sandbox

# chrome OPTIONS: runs it; messages of the console are left in the file console.
chrome() {
    "$browser" --headless $sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage \
        --user-data-dir="$work/profile" --allow-file-access-from-files --enable-logging=stderr "$@" 2>"$work/stderr" >"$work/out" ||
        { echo "page: $browser fails: $(tail -n 1 "$work/stderr")"; return 1; }
    grep 'CONSOLE' "$work/stderr" >"$work/console" || true
}

complain() { echo "page: $1"; failed=1; }

quiet() { [ ! -s "$work/console" ] || complain "$1: the console says: $(head -n 1 "$work/console")"; }

# A frame of a width, and what is in it is as wide as it needs to be: the outer page tells the difference.
measure() {
    cat >"$work/frame.html" <<END
<body><iframe id="f" src="file://$1" style="width:$2px;height:800px;border:0"></iframe><p id="said">nothing</p>
<script>f.onload = () => { said.textContent = "over " + (f.contentDocument.documentElement.scrollWidth - $2) }</script>
END
    chrome --window-size=1600,1000 --virtual-time-budget=5000 --dump-dom "file://$work/frame.html"
    sed -n 's/.*<p id="said">\(.*\)<\/p>.*/\1/p' "$work/out"
}

check() {
    page=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
    failed=0
    for width in 390 1400; do
        chrome --window-size=$width,4000 --screenshot="$2/page_$width.png" "file://$page"
        quiet "at $width pixels"
        [ -s "$2/page_$width.png" ] || complain "no picture at $width pixels"
        over=$(measure "$page" $width)
        [ "$over" = "over 0" ] || complain "at $width pixels: content is wider than the window ($over)"
    done
    chrome --print-to-pdf="$2/page.pdf" "file://$page"
    quiet "in print"
    [ "$(head -c 4 "$2/page.pdf" 2>/dev/null)" = %PDF ] || complain "no print"
    return $failed
}

# faulty TEXT EXPECTED: a page with this in its body must be refused for that.
faulty() {
    printf '<!doctype html><meta charset=utf-8><meta name=viewport content="width=device-width"><body>%s' "$1" >"$work/faulty.html"
    if said=$(check "$work/faulty.html" "$work"); then
        echo "page: self-test: '$1' was not found"
        wrong=1
    elif ! printf '%s\n' "$said" | grep -q "$2"; then
        printf "page: self-test: '%s' was expected to say '%s', not:\n%s\n" "$1" "$2" "$said"
        wrong=1
    fi
}

if [ "${1:-}" = --self-test ]; then
    wrong=0
    faulty '<script>throw new Error("oh")</script>' 'the console says'
    faulty '<meta http-equiv="Content-Security-Policy" content="default-src none"><img src="x.png">' 'the console says'
    faulty '<div style="width:900px">wide</div>' 'at 390 pixels: content is wider'
    [ $wrong = 0 ] || exit 1
    echo "page: self-test passed"
    exit 0
fi

[ $# -ge 1 ] || { echo "usage: tools/page.sh PAGE.html [DIRECTORY]"; exit 2; }
check "$1" "${2:-$work}"
echo "page: $1 opens at 390 and 1,400 pixels and in print, its console is empty"
