#!/bin/sh
# The timed cases on the card, ours and PyTorch in one go, as a table in RESULTS/DATE-CARD.md.
#
#   bench/gpu.sh [PROGRAM [CASE...]]     (default: build/tradewind, lstm lstm-512 mlp mlp-16384 shapes)
#
# RESULTS is the folder that receives the table (default: bench/results); COMMIT names the sources where this is no git
# checkout.
set -eu

cd "$(dirname "$0")/.."
program=${1:-build/tradewind}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- lstm lstm-512 mlp mlp-16384 shapes
results=${RESULTS:-bench/results}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
commit=${COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}

mkdir -p "$results"
"$program" doctor --device cuda --json >"$lines"
status=0
"$program" bench --device cuda --json "$@" >>"$lines" || status=$?
command="tradewind bench --device cuda $*"
table=$(python3 bench/report.py --commit "$commit" --command "$command" --folder "$results" "$lines")
cat "$table"
echo "written to $table"
exit $status
