#!/usr/bin/env python3
"""The rate of a run with ten terminal views of it, beside that of the run alone, in turns.

    watched_rate.py TRADEWIND [--device cuda|cpu] [--times 3] [--epochs 60] [--bars 490000]

Rates are samples a second, the median of all epochs but the first few. Needs nothing but Python itself.
"""
import argparse, os, pty, signal, sqlite3, statistics, subprocess, sys, tempfile, threading, time

here = os.path.dirname(os.path.abspath(__file__))


def drain(fd):
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass


def view(program, run):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LINES="24", COLUMNS="80", LC_ALL="C.UTF-8")
        os.execv(program, [program, "watch", run])
    threading.Thread(target=drain, args=(fd,), daemon=True).start()
    return pid


def train(o, run, views):
    words = [o.program, "train", os.path.join(here, "../examples/quickstart.yaml"), "-q", "--device", o.device, "run.dir=" + run,
             f"data.synthetic.bars={o.bars}", f"train.epochs={o.epochs}", f"train.patience={o.epochs}", "train.batch_size=3072"]
    child = subprocess.Popen(words)
    while views and not os.path.exists(run + "/run.db"):
        time.sleep(0.01)
    pids = [view(o.program, run) for _ in range(views)]
    if child.wait() != 0:
        sys.exit("the run failed")
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    rows = sqlite3.connect(run + "/run.db").execute("select samples_per_s from epochs order by epoch").fetchall()
    return statistics.median(r[0] for r in rows[len(rows) // 4:])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("program", type=os.path.abspath)
    a.add_argument("--device", default="cuda")
    a.add_argument("--times", type=int, default=3)
    a.add_argument("--epochs", type=int, default=60)
    a.add_argument("--bars", type=int, default=490000)
    o = a.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        alone, watched = [], []
        for i in range(o.times):
            alone.append(train(o, f"{tmp}/alone{i}", 0))
            watched.append(train(o, f"{tmp}/watched{i}", 10))
            print(f"alone {alone[-1]:,.0f} samples/s, ten views {watched[-1]:,.0f}", flush=True)
        print(f"medians: {statistics.median(watched) / statistics.median(alone):.4f} of the rate alone")


main()
