#!/bin/sh
# Agents end to end: environment steps a second, acting, learning and all else included.
#
#   bench/agents.sh TRADEWIND [CASE...]     cases: market, market-65, cartpole (on a card), cartpole-cpu; all where none
#                                           is named
#
# market has the reference settings: nets of 2048-1024-512 for policy and value each, 32 environments x 4,096 steps,
# minibatches of 1,024 rows, 10 passes, no KL stop, 64 numbers observed. market-65 observes one more: rows that begin at
# no multiple of 16 bytes go other ways on a card. cartpole: nets of 64-64, 4,096 environments x 128 steps, minibatches
# of 32,768, 4 passes. cartpole-cpu: examples/ppo_cartpole.yaml on two threads. Bars are made up.
# Rates and times are the median of the iterations behind the first, evaluations left out: an act is a step of all
# environments, an update one of a minibatch. Memory and utilisation are those that the card's monitor has seen.
set -eu

[ $# -ge 1 ] || { echo "usage: bench/agents.sh TRADEWIND [CASE...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- market market-65 cartpole cartpole-cpu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

# timed NAME ACTS UPDATES WORDS...: trains, and prints a line of the table. ACTS and UPDATES are those of an iteration.
timed() {
    name=$1 acts=$2 updates=$3
    shift 3
    "$program" train "$@" --json run.dir="$name" >"$name.json" 2>"$name.err" || { cat "$name.err" >&2; return 1; }
    python3 - "$name" "$name.json" "$acts" "$updates" <<'PY'
import json, statistics, sys
lines = [json.loads(l) for l in open(sys.argv[2]) if l.startswith("{")]
done = [l for l in lines if "time/rollout" in l]
rows = done[0]["time/total_timesteps"]
rollout, update = (statistics.median(l[name] for l in done[1:]) for name in ("time/rollout", "time/update"))
rate = statistics.median(rows / (l["time/rollout"] + l["time/update"]) for l in done[1:])
end, m = lines[-1], lines[-1].get("monitor") or {}
mb = m.get("process_peak_bytes")
print("| %s | %s | %s | %s | %s | %.4f | %.4f | %s | %s |" % (sys.argv[1], end["device"], f"{end['timesteps']:,}",
      f"{rate:,.0f}", f"{end['steps_per_s']:,.0f}", 1e3 * rollout / int(sys.argv[3]), 1e3 * update / int(sys.argv[4]),
      "-" if mb is None else f"{mb / 1e6:,.0f}", "-" if m.get("utilisation_mean") is None else f"{m['utilisation_mean']:.0f}"))
PY
}

# market NAME FEATURES: the account's five numbers are observed beside these.
market() {
    python3 "$here/data.py" bars bars.csv 100000
    "$program" import bars.csv --no-vector --features "fast=$(seq -s, -f 'log_return_%g' 1 "$2")" -o bars.npz >import.log
    cat >market.yaml <<'Y'
data: {set: bars.npz}
agent: {env: market, n_envs: 32, n_steps: 4096, batch_size: 1024, n_epochs: 10, total_timesteps: 1310720, evaluate_every: 1000}
account: {spread: 0.0001, commission: 0.00002}
model: {kind: mlp, widths: 2048-1024-512, activation: relu}
Y
    timed "$1" 4096 1280 market.yaml --device cuda
}

cartpole() {
    cat >cartpole.yaml <<'Y'
agent: {env: cartpole, n_envs: 4096, n_steps: 128, batch_size: 32768, n_epochs: 4, total_timesteps: 52428800, evaluate_every: 1000}
model: {kind: mlp, widths: 64-64}
Y
    timed cartpole 128 64 cartpole.yaml --device cuda
}

cartpole_cpu() {
    timed cartpole-cpu 32 20 "$here/../examples/ppo_cartpole.yaml" --device cpu --threads 2
}

echo "| case | device | steps | steps/s, median of iterations | of the whole run | ms an act | ms an update | MB of the process | utilisation, % |"
echo "|---|---|---|---|---|---|---|---|---|"
for case; do
    case $case in
    market) market market 59 ;;
    market-65) market market-65 60 ;;
    cartpole) cartpole ;;
    cartpole-cpu) cartpole_cpu ;;
    *) echo "agents: $case: unknown case" >&2; exit 2 ;;
    esac
done
