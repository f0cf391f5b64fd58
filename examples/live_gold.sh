#!/bin/sh
# From a trained run to a rehearsal that is compared with its backtest, and the command that goes on from there.
# Needs XAUUSD_H1.csv, here or in the folder $TRADEWIND_DATA, and the run of examples/gold_backtest.yaml:
#
#   tradewind train examples/gold_backtest.yaml && sh examples/live_gold.sh
set -eu
run=${1-runs/gold_backtest}
bars=${2-XAUUSD_H1.csv}
[ -f "$bars" ] || bars=${TRADEWIND_DATA-.}/XAUUSD_H1.csv
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

tradewind backtest "$run" --bars "$bars" --trades "$made/backtest.csv" -q > "$made/statistics"
tradewind live "$run" --feed "replay:$bars" --history none --trades "$made/live.csv" --latency
if cmp "$made/backtest.csv" "$made/live.csv"; then
    echo "same trades, to the last digit: $(($(wc -l < "$made/live.csv") - 1))"
fi
echo "next: tradewind live $run --feed FILE_THAT_GROWS.csv --exec intents.jsonl"
