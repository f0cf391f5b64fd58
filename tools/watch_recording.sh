#!/bin/sh
# The recording of the terminal view in doc/watch.svg: trains examples/quickstart.yaml, looks at the view in tmux while it
# goes on, and writes what stood there as an SVG that shows one frame after the other. A reader who wants no motion sees
# the last one.
#
#   tools/watch_recording.sh TRADEWIND >doc/watch.svg     needs tmux
set -eu

FRAMES=12 # kept at most

[ $# = 1 ] || { echo "usage: tools/watch_recording.sh TRADEWIND" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
program=$(realpath "$1")
work=$(mktemp -d)
server=recording-$$
pid=
trap 'tmux -L $server kill-server 2>"$work/why" || true; [ -z "$pid" ] || kill "$pid" 2>"$work/why" || true; rm -rf "$work"' EXIT
cd "$work"

export LC_ALL=C.UTF-8
unset NO_COLOR
"$program" train "$root/examples/quickstart.yaml" -q --device cpu --threads 1 train.epochs=12 train.patience=12 run.dir=runs/gold &
pid=$!
tmux -L $server -f /dev/null new-session -d -x 90 -y 24 "exec '$program' watch runs/gold"

# A frame every second, until one of the run's end.
taken=0
until [ $taken -gt 0 ] && head -n 1 "frame.$(printf %04d $taken)" | grep -q ' done'; do
    sleep 1
    taken=$((taken + 1))
    [ $taken -le 600 ] || { echo "recording: the run does not end" >&2; exit 1; }
    tmux -L $server capture-pane -e -N -p >"frame.$(printf %04d $taken)"
done
pid=

# The newest and as many before it as are kept, evenly.
kept=$(awk -v n=$taken -v most=$FRAMES 'BEGIN {
    if (most > n) most = n
    for (i = 1; i <= most; i++) printf "frame.%04d ", most == 1 ? n : 1 + int((i - 1) * (n - 1) / (most - 1) + 0.5)
}')
# shellcheck disable=SC2086
LC_ALL=C awk '
    function columns(s) { gsub(/[\200-\277]/, "", s); return length(s) }
    function plain(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }

    # Takes the style of the text behind an "ESC [ ... m".
    function take_style(s,    n, i, code) {
        n = split(s == "" ? "0" : s, code, ";")
        for (i = 1; i <= n; i++) {
            if (code[i] == 0) { colour = ""; bold = dim = reverse = 0 }
            else if (code[i] == 1) bold = 1
            else if (code[i] == 2) dim = 1
            else if (code[i] == 7) reverse = 1
            else if (code[i] == 22) bold = dim = 0
            else if (code[i] == 27) reverse = 0
            else if (code[i] == 39) colour = ""
            else if (code[i] in colours) colour = colours[code[i]]
        }
    }

    # A piece of a line in one style: each word at its column, as wide as its columns, as the dots of braille may come
    # from another font.
    function put(row, at, s,    out, word, n, as) {
        as = reverse ? " class=\"r\"" : colour != "" ? " class=\"" colour "\"" : dim ? " class=\"d\"" : bold ? " class=\"b\"" : ""
        out = reverse ? sprintf("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"18\" class=\"bar\"/>", LEFT + WIDE * at, 18 * row - 8, WIDE * columns(s)) : ""
        while (match(s, /[^ ]+/)) {
            at += columns(substr(s, 1, RSTART - 1))
            word = substr(s, RSTART, RLENGTH)
            n = columns(word)
            out = out sprintf("<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\"%s>%s</text>", LEFT + WIDE * at, 18 * row + 6, WIDE * n, as, plain(word))
            at += n
            s = substr(s, RSTART + RLENGTH)
        }
        return out
    }

    function draw(row, s,    out, at, piece, codes, rest) {
        at = 0
        take_style("0")
        while (match(s, /\033\[[0-9;]*m/)) {
            piece = substr(s, 1, RSTART - 1)
            codes = substr(s, RSTART + 2, RLENGTH - 3)
            rest = substr(s, RSTART + RLENGTH)
            out = out put(row, at, piece)
            at += columns(piece)
            take_style(codes)
            s = rest
        }
        return out put(row, at, s)
    }

    BEGIN {
        WIDE = 8.4; LEFT = 10; SECONDS = 0.9; REST = 4 # REST: frames that the last one stays
        split("31 r1 32 g 33 y 34 u 35 u 36 c", list, " ")
        for (i = 1; i in list; i += 2) colours[list[i]] = list[i + 1]
    }
    FNR == 1 { frame++ }
    { line[frame, FNR] = $0; if (FNR > rows) rows = FNR }
    END {
        steps = frame + REST
        for (row = 1; row <= rows; row++)
            for (from = 1; from <= frame; from = to) {
                for (to = from + 1; to <= frame && line[to, row] == line[from, row]; to++) ;
                words = draw(row, line[from, row])
                if (words == "") continue
                if (from == 1 && to > frame) { body = body words "\n"; continue }
                name = "f" from "_" to
                body = body "<g class=\"" name (to > frame ? " last" : "") "\">" words "</g>\n"
                if (name in known) continue
                known[name] = 1
                low = 100 * (from - 1) / steps; high = to > frame ? 100 : 100 * (to - 1) / steps
                style = style sprintf(".%s{animation-name:%s}@keyframes %s{0%%{visibility:%s}%s%s}\n", name, name, name,
                    from == 1 ? "visible" : "hidden", from == 1 ? "" : sprintf("%.2f%%{visibility:visible}", low),
                    to > frame ? "100%{visibility:visible}" : sprintf("%.2f%%{visibility:hidden}100%%{visibility:hidden}", high))
            }
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"776\" height=\"%d\" viewBox=\"0 0 776 %d\" role=\"img\">\n", 18 * rows + 24, 18 * rows + 24
        print "<title>tradewind watch: a run in the terminal, from its first epoch to its end</title>"
        print "<style>"
        printf "g g{visibility:hidden;animation:%.1fs step-end infinite}\n", SECONDS * steps
        printf "%s", style
        print ".r{fill:#16191d;font-weight:bold}.bar{fill:#d7dce2}.b{font-weight:bold}.d{fill:#8b949e}.c{fill:#56b6c2}.y{fill:#e5c07b}.g{fill:#8fce7e}.r1{fill:#f0776c}.u{fill:#82aaff}"
        print "@media (prefers-reduced-motion:reduce){g g{animation:none}g g.last{visibility:visible}}"
        print "</style>"
        print "<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#16191d\"/>"
        print "<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#d7dce2\">"
        printf "%s", body
        print "</g></svg>"
    }' $kept
