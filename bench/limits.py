#!/usr/bin/env python3
"""Whether a memory limit is held, and what it costs: plans beside what the card's monitor counts.

    python3 bench/limits.py --device cuda|cpu --program build/tradewind [--part A,B,C,D] [--batches N,N] [--quick] [--out FILE.json]

    A  limits x effective batches of the reference LSTM, N-BEATS and the transformer: sampled from outside every 20 ms the
       use never exceeds the limit, and is what `plan` says to 2 % or 32 MB; a limit that is too small is refused in under
       a second with the smallest one that works, and that one works
    B  the rate at the largest limit is within 3 % of none, at the smallest at least half
    C  any plan gives the same losses: to 1e-5 over 100 steps, of N-BEATS over 10, in fp32; in bf16 they are shown
    D  of a transformer of 12 layers, computing again takes a quarter of the memory of activations, and 35 % more time

On a card the use is what NVML counts for the process, or where it does not name it, what it counts for the card less
what it did before; nothing else may use the card. On the CPU, where batches, limits and the models of C and D are
smaller, it is the process's anonymous memory, and rates are only as good as the machine is idle. Ends with status 1
where something is missed. Needs nothing but Python itself; files go to /dev/shm where there is one.
"""
import argparse
import ctypes
import json
import os
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

EVERY = 0.02
SLACK_SHARE, SLACK_BYTES = 0.02, 32e6
GB = 2 ** 30
SAMPLES = 68000  # of an epoch, so that the largest batch is a whole one

MODELS = {
    "lstm": """
data: {set: synthetic, synthetic: {bars: BARS}, split: {train: 0.95, validation: 0.02, embargo: 0}}
model: {kind: lstm, hidden: {fast: 32, slow: 16}, dropout: 0.3}
""",
    "nbeats": """
data: {set: panel.npz, windows: {series: 60}, level: none}
model: {kind: nbeats, stacks: [generic], blocks: 30, layers: 4, width: 512}
""",
    "transformer": """
data: {set: stream.npz, windows: {fast: 50}, split: {train: 0.95, validation: 0.02, embargo: 0}}
model: {kind: transformer, hidden: {fast: 128}, layers: 3, heads: 8, ff: 512, activation: gelu, head: 0,
        dropout: 0.1}
""",
}
REST = """
train: {epochs: 1, patience: 1000000, checkpoint_minutes: 0, checkpoint_every: 1000000}
gpu_optimization: {dynamic_batch_sizing: true}
"""


# What is measured from outside


class Card:
    """A card's memory, by its own monitor."""

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    class Process(ctypes.Structure):
        _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("part", ctypes.c_uint)]

    MOST = 64

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.card = ctypes.c_void_p()
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        number = int(first) if first.isdigit() else 0
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # NVML's order
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(self.card)):
            sys.exit("limits: the card's monitor does not answer")
        self.processes = getattr(self.nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        self.idle = self.used()
        if self.idle > 2 * GB:
            print("limits: %.1f MB of the card are in use already; they must not change" % (self.idle / 1e6))

    def used(self):
        m = self.Memory()
        if self.nvml.nvmlDeviceGetMemoryInfo(self.card, ctypes.byref(m)):
            sys.exit("limits: the card's monitor does not count memory")
        return m.used

    def of_process(self, pid):
        """None where the monitor does not name it."""
        count, all_of = ctypes.c_uint(self.MOST), (self.Process * self.MOST)()
        if not self.processes or self.processes(self.card, ctypes.byref(count), all_of):
            return None
        for p in all_of[:count.value]:
            if p.pid == pid and p.used != 2 ** 64 - 1:
                return p.used
        return None

    def rest(self):
        """Waits until the last process's memory has been given back."""
        end = time.monotonic() + 3
        while self.used() > self.idle + 4e6 and time.monotonic() < end:
            time.sleep(0.01)
        self.before = self.used()

    def look(self, pid):
        return {"card": max(0, self.used() - self.before), "process": self.of_process(pid)}


class Host:
    """A process's anonymous memory."""

    def rest(self):
        pass

    def look(self, pid):
        try:
            with open("/proc/%d/status" % pid) as f:
                found = re.search(r"RssAnon:\s*(\d+) kB", f.read())
        except OSError:
            found = None
        return {"process": int(found.group(1)) * 1024 if found else None}


class Watch(threading.Thread):
    """Samples a process's use until it is told to stop."""

    def __init__(self, meter, pid):
        super().__init__(daemon=True)
        self.meter, self.pid, self.ended = meter, pid, threading.Event()
        self.most, self.samples = {}, 0

    def run(self):
        due = time.monotonic()
        while not self.ended.is_set():
            for key, value in self.meter.look(self.pid).items():
                if value is not None:
                    self.most[key] = max(value, self.most.get(key, 0))
            self.samples += 1
            due = max(due + EVERY, time.monotonic())
            self.ended.wait(due - time.monotonic())

    def peak(self):
        self.ended.set()
        self.join()
        return self.most.get("process") or self.most.get("card") or 0


# Running the program


class Bench:
    def __init__(self, options, folder):
        self.program = os.path.realpath(options.program)
        self.device, self.quick, self.folder, self.batches = options.device, options.quick, folder, options.batches
        self.card = options.device == "cuda"
        self.meter = Card() if self.card else Host()
        self.key = "gpu_optimization.max_memory_gb" if self.card else "gpu_optimization.max_host_memory_gb"
        self.rows, self.verdicts = [], []
        os.environ["TRADEWIND_WISDOM"] = os.path.join(folder, "wisdom")  # what was tuned here must not choose

    def call(self, words, watched=False):
        """Runs to the end: status, seconds, lines of JSON, errors, and the peak that was seen."""
        self.meter.rest()
        began = time.monotonic()
        child = subprocess.Popen([self.program] + words, cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        watch = Watch(self.meter, child.pid)
        if watched:
            watch.start()
        out, errors = child.communicate()
        seconds = time.monotonic() - began
        peak = watch.peak() if watched else None
        return {"status": child.returncode, "seconds": seconds, "errors": errors.decode().strip(), "peak": peak,
                "lines": [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")],
                "samples": watch.samples, "seen": watch.most}

    def done(self, words):
        r = self.call(words)
        if r["status"]:
            sys.exit("limits: %s: %s" % (words[0], r["errors"]))
        return r

    def words(self, command, model, limit, keys):
        all_of = [command, model + ".yaml", "--device", self.device, "--json", "run.dir=run"]
        return all_of + list(keys) + ([] if limit is None else ["%s=%.2f" % (self.key, limit)])

    def plan(self, model, limit, *keys):
        return self.done(self.words("plan", model, limit, keys))["lines"][-1]

    def train(self, model, limit, *keys, refused=False):
        r = self.call(self.words("train", model, limit, keys), watched=True)
        if r["status"] and not refused:
            r["failed"] = r["errors"] or "ended with status %d" % r["status"]
            print("  train %s %s: %s" % (model, " ".join(keys), r["failed"]))
        epochs = [line for line in r["lines"] if "epoch" in line]
        rates = [line["samples_per_s"] for line in epochs]
        r["rate"] = statistics.median(rates[1:] or rates) if rates else 0
        r["result"] = r["lines"][-1] if r["lines"] else {}
        return r

    def verdict(self, what, ok, figures):
        self.verdicts.append({"what": what, "ok": bool(ok), "figures": figures})
        print("%s  %s: %s" % ("PASS" if ok else "MISS", what, figures), flush=True)


def describe(plan):
    c = plan["choice"]
    return "%d x %d, again %d, %s" % (c["accumulation"], c["micro_batch"], c["again"], c["residency"])


# Data


def write_bars(path, bars):
    rng, price = random.Random(5), 1900.0
    with open(path, "w") as out:
        out.write("time,open,high,low,close,tick_volume,spread,real_volume\n")
        for i in range(bars):
            close = price * (1 + rng.gauss(0, 3e-4))
            high, low = max(price, close) + rng.random() * 0.3, min(price, close) - rng.random() * 0.3
            out.write("%d,%.2f,%.2f,%.2f,%.2f,%d,5,0\n" % (
                1420070400 + 300 * i, price, high, low, close, rng.randrange(50, 900)))
            price = close


def write_panel(path, series, samples):
    """Of so many samples of each series with a history of 60 and 12 values to forecast, and 12 more held out."""
    rng, length = random.Random(6), samples + 60 + 12 + 11
    with open(path, "w") as out:
        out.write("id," + ",".join("V%d" % i for i in range(length)) + "\n")
        for s in range(series):
            out.write("S%d," % s + ",".join("%.4f" % rng.gauss(0, 1) for _ in range(length)) + "\n")


def make_data(bench, samples):
    """Samples of an epoch, and for each model its description."""
    bars = int(samples / 0.95) + 300
    write_bars(os.path.join(bench.folder, "bars.csv"), bars)
    write_panel(os.path.join(bench.folder, "panel.csv"), 40, samples // 40)
    for words in (["bars.csv", "-o", "stream.npz", "--no-vector"],
                  ["panel.csv", "-o", "panel.npz", "--horizon", "12", "--history", "60"]):
        bench.done(["import"] + words + ["-q"])
    for name, text in MODELS.items():
        with open(os.path.join(bench.folder, name + ".yaml"), "w") as out:
            out.write(text.lstrip().replace("BARS", str(bars)) + REST.lstrip())


# A: limits


def within(predicted, observed):
    return abs(predicted - observed) < max(SLACK_SHARE * predicted, SLACK_BYTES)


def held_row(bench, model, batch, limit, plan, run):
    predicted, observed, end = plan["memory"]["total"], run["peak"], run["result"]
    ran = not run["status"]
    row = {"part": "A", "model": model, "limit_gb": limit, "batch": batch, "choice": plan["choice"],
           "memory": plan["memory"], "predicted": predicted, "observed": observed, "rate": run["rate"],
           "seconds": run["seconds"], "seen": run["seen"], "samples": run["samples"], "failed": run.get("failed"),
           "base_at_end": end.get("base_bytes"), "slab": end.get("slab_bytes"),
           "held": ran and 0 < observed <= limit * GB, "close": ran and within(predicted, observed)}
    added = "-"
    if bench.card and row["base_at_end"]:
        added = "%+.1f" % ((row["base_at_end"] - plan["memory"]["base"]) / 1e6)
    difference = observed - predicted
    print("%-12s %6.2f %6d  %-32s %9.1f %9.1f %+7.1f %+6.2f%% %6s %11.0f %5.1f %s" % (
        model, limit, batch, describe(plan), predicted / 1e6, observed / 1e6, difference / 1e6,
        100 * difference / predicted, added, row["rate"], run["seconds"],
        "" if row["held"] and row["close"] else "MISSED"), flush=True)
    bench.rows.append(row)
    return row


def refused_row(bench, model, batch, limit, run, smallest):
    found = re.search(r"to ([0-9.]+) or more", run["errors"])
    named = float(found.group(1)) if found else None
    right = run["status"] == 1 and named is not None and abs(named - smallest) < 0.015
    row = {"part": "A", "model": model, "limit_gb": limit, "batch": batch, "seconds": run["seconds"], "named_gb": named,
           "planned_gb": smallest, "errors": run["errors"], "ok": right and run["seconds"] < 1}
    print("%-12s %6.2f %6d  refused in %.2f s, names %s GB%s" % (
        model, limit, batch, run["seconds"], named, "" if row["ok"] else "  MISSED: " + run["errors"]), flush=True)
    bench.rows.append(row)
    return row


def limits_of(bench, model, batch, limits, steps):
    keys = ("train.batch_size=%d" % batch, "train.steps=%d" % steps)
    if bench.card:
        keys += ("train.epochs=%d" % (12 if model == "lstm" else 3),)
    refused, smallest, held = [], None, []
    for limit in limits:
        plan = bench.plan(model, limit, *keys)
        smallest = plan["smallest_limit_gb"]
        if plan["fits"]:
            held.append(held_row(bench, model, batch, limit, plan, bench.train(model, limit, *keys)))
        else:
            run = bench.train(model, limit, *keys, refused=True)
            refused.append(refused_row(bench, model, batch, limit, run, smallest))
    if not refused:
        below = max(0.01, round(smallest - 0.02, 2))
        run = bench.train(model, below, *keys, refused=True)
        refused.append(refused_row(bench, model, batch, below, run, smallest))
    named = refused[-1]["named_gb"] or smallest
    plan = bench.plan(model, named, *keys)
    last = held_row(bench, model, batch, named, plan, bench.train(model, named, *keys))
    return held, refused, last


def part_a(bench):
    if bench.card:
        # long enough that several samples see the whole of it
        limits, batches, steps = (12, 8, 4, 2, 1), (256, 2048, 16384, 65536), {"lstm": 4000, "transformer": 140}
        if bench.quick:
            limits, batches = (12, 2, 1), (256, 65536)
    else:
        limits, batches, steps = (2, 1.5, 1, 0.5, 0.25), (64, 256, 1024), {"nbeats": 1, "transformer": 1}
        if bench.quick:
            limits, batches = (1, 0.25), (64, 512)
    if bench.batches:
        batches = [int(n) for n in bench.batches.split(",")]
    print("A  %-9s %6s %6s  %-32s %9s %9s %7s %7s %6s %11s %5s" % (
        "model", "GB", "batch", "plan", "planned", "seen MB", "off MB", "off", "added", "samples/s", "s"))
    held, refused, least = [], [], []
    for model in MODELS:
        for batch in batches:
            h, r, last = limits_of(bench, model, batch, limits, steps.get(model, 70))
            held += h
            refused += r
            least.append(last)
    judge_limits(bench, held + least, refused, least)


def judge_limits(bench, every, refused, least):
    count = lambda rows, key: "%d of %d" % (sum(r[key] for r in rows), len(rows))
    tightest = max(every, key=lambda r: r["observed"] / r["limit_gb"])
    worst = max(every, key=lambda r: abs(r["observed"] - r["predicted"]))
    bench.verdict("A use never exceeds the limit", all(r["held"] for r in every), "%s; at most %.2f %% of %.2f GB" % (
        count(every, "held"), 100 * tightest["observed"] / GB / tightest["limit_gb"], tightest["limit_gb"]))
    bench.verdict("A predicted and seen differ by less than 2 % or 32 MB", all(r["close"] for r in every),
                  "%s; at most %+.1f MB (%s, %.2f GB, %d)" % (
                      count(every, "close"), (worst["observed"] - worst["predicted"]) / 1e6, worst["model"],
                      worst["limit_gb"], worst["batch"]))
    bench.verdict("A too small a limit is refused in a second with the smallest that works",
                  all(r["ok"] for r in refused),
                  "%s; the slowest took %.2f s" % (count(refused, "ok"), max(r["seconds"] for r in refused)))
    bench.verdict("A that one works", all(r["held"] for r in least), count(least, "held"))


# B: rates


def rates_of(bench, model, words, ways, rounds):
    """Medians, and all of them: of each limit in turns."""
    rates = {name: [] for name in ways}
    for _ in range(rounds):
        for name, limit in ways.items():
            rates[name].append(bench.train(model, limit, *words)["rate"])
    return {name: statistics.median(r) for name, r in rates.items()}, rates


def part_b(bench):
    if bench.card:
        cases, most, rounds = (("lstm", 16384, 60), ("nbeats", 16384, 25), ("transformer", 16384, 8)), 12, 3
        more = {"lstm": ("data.synthetic.bars=490000",)}
    else:
        cases, most, rounds = (("lstm", 256, 4), ("nbeats", 64, 1), ("transformer", 64, 1)), 4, 3
        more = {"nbeats": ("train.steps=8",), "transformer": ("train.steps=16",)}
    rounds = 1 if bench.quick else rounds
    print("B  rates of steady epochs, in turns; medians of %d" % rounds)
    for model, batch, epochs in cases:
        words = ("train.batch_size=%d" % batch, "train.epochs=%d" % epochs) + more.get(model, ())
        smallest = bench.plan(model, None, *words)["smallest_limit_gb"]
        ways = {"none": None, "largest": most, "smallest": smallest}
        rate, rates = rates_of(bench, model, words, ways, rounds)
        plans = {name: describe(bench.plan(model, limit, *words)) for name, limit in ways.items()}
        none = rate["none"] or float("inf")
        bench.rows.append({"part": "B", "model": model, "batch": batch, "rates": rates, "plans": plans,
                           "smallest_gb": smallest})
        for name, limit in ways.items():
            print("%-12s %6s %6d  %-32s %11.0f samples/s, %.3f of none" % (
                model, "none" if limit is None else "%.2f" % limit, batch, plans[name], rate[name], rate[name] / none))
        bench.verdict("B %s at %g GB within 3 %% of no limit" % (model, most), rate["largest"] >= 0.97 * none,
                      "%.3f" % (rate["largest"] / none))
        bench.verdict("B %s at the smallest limit at least half" % model, rate["smallest"] >= 0.5 * none,
                      "%.3f at %.2f GB" % (rate["smallest"] / none, smallest))


# C: losses

EPOCHS = 10
STEPS = {"lstm": 10, "nbeats": 1, "transformer": 10}  # of an epoch


def losses(bench, each):
    """Of every epoch's steps, and of the validation samples behind them."""
    metric = "SELECT e.step, m.value FROM epochs e JOIN metrics m ON m.epoch = e.epoch WHERE m.part = ? AND " \
             "m.name = 'loss' ORDER BY e.epoch"
    db = sqlite3.connect(os.path.join(bench.folder, "run", "run.db"))
    train, validation = (db.execute(metric, (part,)).fetchall() for part in ("train", "validation"))
    db.close()
    if [step for step, _ in train] != [each * (i + 1) for i in range(EPOCHS)]:
        sys.exit("limits: epochs of part C should have %d steps; these end at %s" % (each, [r[0] for r in train]))
    return [value for _, value in train], [value for _, value in validation]


def off(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def make_few(bench, batch):
    """Keys that leave as many samples as an epoch's steps take."""
    series = max(32, batch // 4)  # each has one validation sample, and a mean of few is not much of a curve
    write_panel(os.path.join(bench.folder, "few.csv"), series, batch * STEPS["nbeats"] // series)
    bench.done(["import", "few.csv", "-o", "few.npz", "--horizon", "12", "--history", "60", "-q"])
    stream = bench.done(["inspect", "stream.npz", "--json"])["lines"][-1]["samples"]
    bars = max(1000, int(batch * STEPS["lstm"] / 0.8))
    share = "data.split.train=%.8f"
    return {"lstm": ("data.synthetic.bars=%d" % (bars + 240), share % ((batch * STEPS["lstm"] + 0.5) / bars)),
            "nbeats": ("data.set=few.npz",),
            "transformer": (share % ((batch * STEPS["transformer"] + 0.5) / stream), "data.split.validation=0.05")}


def ways_beside(bench, model, batch, again):
    ways = [(4, 0, "device"), (16, 0, "device"), (1, again, "device"), (1, 0, "host"), (8, again, "host")]
    return ways[:1] + ways[-1:] if bench.quick else ways


def curves_of(bench, model, batch, mode, fixed, again):
    """The largest difference of training losses; NaN where a run failed."""
    if bench.train(model, None, *fixed, *way_keys(batch, 1, 0, "device"))["status"]:
        return float("nan")
    want, worst = losses(bench, STEPS[model]), 0.0
    for parts, more, place in ways_beside(bench, model, batch, again):
        if bench.train(model, None, *fixed, *way_keys(batch, parts, more, place))["status"]:
            return float("nan")
        got = losses(bench, STEPS[model])
        row = {"part": "C", "model": model, "precision": mode, "accumulation": parts, "again": more,
               "residency": place, "train_off": off(got[0], want[0]), "validation_off": off(got[1], want[1]),
               "same": got == want, "losses": got, "beside": want}
        bench.rows.append(row)
        worst = max(worst, row["train_off"], row["validation_off"])
        print("%-12s %-5s %3d x %5d, again %2d, %-6s  loss %.6f to %.6f; off by at most %.2e in training, %.2e in "
              "validation%s" % (model, mode, parts, batch // parts, more, place, want[0][0], want[0][-1],
                                row["train_off"], row["validation_off"], "; the same bits" if row["same"] else ""),
              flush=True)
    return worst


def part_c(bench):
    batch = 4096 if bench.card else 128
    small = {} if bench.card else {"nbeats": ("model.width=128", "model.blocks=8"),
                                   "transformer": ("model.hidden.fast=32", "model.ff=128", "model.heads=4")}
    again = {"lstm": 1, "nbeats": 29 if bench.card else 7, "transformer": 2}
    few = make_few(bench, batch)
    # with the usual 1e-3 the first step triples N-BEATS's loss, and whatever comes after is chaos
    calm = {"nbeats": ("train.optimizer.lr=1e-4",)}
    print("C  mean losses of %d epochs beside those of one micro-batch, nothing computed again, data on the device" %
          EPOCHS)
    for model in MODELS:
        steps = EPOCHS * STEPS[model]
        for mode, word in (("fp32", "false"), ("bf16", "bf16")) if bench.card else (("fp32", "false"),):
            fixed = few[model] + small.get(model, ()) + calm.get(model, ()) + (
                "train.epochs=%d" % EPOCHS, "gpu_optimization.use_mixed_precision=" + word,
                "gpu_optimization.dynamic_batch_sizing=false")
            worst = curves_of(bench, model, batch, mode, fixed, again[model])
            if mode == "fp32":
                bench.verdict("C %s: the same losses to 1e-5 over %d steps" % (model, steps), worst <= 1e-5,
                              "%.2e at most" % worst)
            else:
                print("      C %s in %s, which is not judged: %.2e at most" % (model, mode, worst))


def way_keys(batch, parts, again, place):
    return ("train.batch_size=%d" % (batch // parts), "gpu_optimization.gradient_accumulation_steps=%d" % parts,
            "gpu_optimization.recompute=%d" % again, "data.residency=" + place)


# D: computing again


def part_d(bench):
    batch, epochs, rounds = (2048, 4, 3) if bench.card else (64, 1, 2)
    fixed = ("model.layers=12", "train.batch_size=%d" % batch, "train.epochs=%d" % epochs)
    if not bench.card:
        fixed += ("model.hidden.fast=32", "model.ff=128", "model.heads=4", "train.steps=12")
    print("D  a transformer of 12 layers, batch %d" % batch)
    for mode, word in (("bf16", "bf16"), ("fp32", "false")) if bench.card else (("fp32", "false"),):
        keys = fixed + ("gpu_optimization.use_mixed_precision=" + word,)
        again_beside_off(bench, mode, keys, 1 if bench.quick else rounds)


def again_beside_off(bench, mode, fixed, rounds):
    ways = {"off": "gpu_optimization.recompute=off", "again": "gpu_optimization.recompute=11"}
    held = {name: bench.plan("transformer", None, *fixed, key)["activation_bytes"] for name, key in ways.items()}
    runs = {name: [] for name in ways}
    for _ in range(rounds):
        for name, key in ways.items():
            runs[name].append(bench.train("transformer", None, *fixed, key))
    rate = {name: statistics.median(r["rate"] for r in all_of) for name, all_of in runs.items()}
    seen = {name: max(r["peak"] for r in all_of) for name, all_of in runs.items()}
    ratio, slower = held["off"] / held["again"], rate["off"] / rate["again"] - 1 if rate["again"] else float("inf")
    bench.rows.append({"part": "D", "precision": mode, "activations": held, "seen": seen, "rates": rate, "ratio": ratio,
                       "slower": slower})
    for name in ways:
        print("%-5s %-6s activations %9.1f MB, seen %9.1f MB, %11.0f samples/s" % (
            mode, name, held[name] / 1e6, seen[name] / 1e6, rate[name]))
    bench.verdict("D %s: memory of activations falls at least 4 times" % mode, ratio >= 4, "%.2f" % ratio)
    bench.verdict("D %s: for at most 35 %% more time" % mode, slower <= 0.35, "%+.1f %%" % (100 * slower))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    here = os.path.dirname(os.path.realpath(__file__))
    parser.add_argument("--program", default=os.path.join(here, "..", "build", "tradewind"))
    parser.add_argument("--part", default="A,B,C,D", help="some of them, such as A,C")
    parser.add_argument("--quick", action="store_true", help="fewer limits, batches, plans and rounds")
    parser.add_argument("--batches", help="effective batches of part A, such as 256,4096")
    parser.add_argument("--out", help="everything as JSON")
    options = parser.parse_args()
    parts = {"A": part_a, "B": part_b, "C": part_c, "D": part_d}
    chosen = [p.strip().upper() for p in options.part.split(",")]
    if not set(chosen) <= set(parts):
        parser.error("parts are A, B, C and D")
    folder = tempfile.mkdtemp(prefix="tradewind-limits.", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    began = time.monotonic()
    try:
        bench = Bench(options, folder)
        make_data(bench, SAMPLES if bench.card else 4000)
        for name in chosen:
            then = time.monotonic()
            parts[name](bench)
            print("%s took %.0f s\n" % (name, time.monotonic() - then), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    missed = [v for v in bench.verdicts if not v["ok"]]
    print("%d of %d hold, in %.0f s" % (
        len(bench.verdicts) - len(missed), len(bench.verdicts), time.monotonic() - began))
    for v in missed:
        print("MISS  %s: %s" % (v["what"], v["figures"]))
    if options.out:
        with open(options.out, "w") as out:
            json.dump({"device": options.device, "verdicts": bench.verdicts, "rows": bench.rows}, out, indent=1)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
