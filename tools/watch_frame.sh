#!/bin/sh
# The picture of the terminal view in doc/watch.svg: a frame of a run, as text in an SVG.
#
#   tools/watch_frame.sh TRADEWIND RUN >doc/watch.svg
set -eu

[ $# = 2 ] || { echo "usage: tools/watch_frame.sh TRADEWIND RUN" >&2; exit 2; }
LC_ALL=C.UTF-8 LINES=24 COLUMNS=90 "$1" watch --once "$2" | LC_ALL=C awk '
    # Columns of a text in UTF-8.
    function columns(s) { gsub(/[\200-\277]/, "", s); return length(s) }
    function plain(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }

    # Each word at its column, as wide as its columns: the dots of braille may come from another font.
    function put(row, s, colour,    at, word, n) {
        at = 0
        while (match(s, /[^ ]+/)) {
            at += columns(substr(s, 1, RSTART - 1))
            word = substr(s, RSTART, RLENGTH)
            n = columns(word)
            printf "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\"%s>%s</text>\n", 10 + wide * at, 18 * row + 6, wide * n, colour, plain(word)
            at += n
            s = substr(s, RSTART + RLENGTH)
        }
    }
    BEGIN { wide = 8.4 }
    { line[NR] = $0 }
    END {
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"776\" height=\"%d\" role=\"img\">\n", 18 * NR + 24
        print "<title>tradewind watch: a run in the terminal</title>"
        print "<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#16191d\"/>"
        print "<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#d7dce2\">"
        for (i = 1; i <= NR; i++)
            put(i, line[i], i == 1 ? " font-weight=\"bold\"" : line[i] ~ /^ (poor|fair)/ ? " fill=\"#e5c07b\"" : line[i] ~ /^ good/ ? " fill=\"#8fce7e\"" : "")
        print "</g></svg>"
    }'
