#!/bin/bash
# Backtests and walks on two processors: the event pass, 80 settings of 150,000 bars, the ten folds of gold_walk.
#
#   bench/backtests.sh TRADEWIND [DATA]     DATA: a folder with XAUUSD_H1.csv, for the folds
#
# Bars of the settings are made up: an order every twenty bars with a stop and a target; seconds are by the clock, with
# both files read, the fastest of five.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: bench/backtests.sh TRADEWIND [DATA]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1") data=${2:+$(realpath "$2")}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
two() { taskset -c 0,1 "$@"; }

taskset -c 0 "$program" bench replay --device cpu --no-peer | tail -n 1

python3 "$here/data.py" bars bars.csv 150000
python3 - <<'PY'
rows = [l.split(",") for l in open("bars.csv")]
head = rows[0]
t, c = head.index("time"), head.index("close")
with open("signals.csv", "w") as out:
    out.write("time,position,stop,target\n")
    for n, row in enumerate(rows[20::20]):
        side, close = (-1 if n % 2 else 1), float(row[c])
        out.write(f"{row[t]},{side / 2},{close * (1 - side / 100):.5f},{close * (1 + side / 50):.5f}\n")
PY
spreads=$(seq -s, -f %.6f 0.00001 0.00001 0.0004)
for _ in 1 2 3 4 5; do
    began=$(date +%s%N)
    two "$program" backtest --signals signals.csv --bars bars.csv account.commission=0.00002 account.cash=1000000 \
        --sweep "account.spread=$spreads" --sweep account.slippage=0,0.00001 --json >sweep.json
    echo $((($(date +%s%N) - began) / 1000))
done | sort -n | head -n 1 | awk '{ printf "80 settings x 150,000 bars: %.3f s\n", $1 / 1e6 }'

[ -n "$data" ] || exit 0
began=$(date +%s%N)
TRADEWIND_DATA=$data two "$program" walk "$here/../examples/gold_walk.yaml" -q --device cpu --threads 2 walk.jobs=2 run.dir=walk >walk.log
echo $((($(date +%s%N) - began) / 1000000)) | awk '{ printf "ten folds of gold_walk: %.1f s\n", $1 / 1e3 }'
