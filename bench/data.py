#!/usr/bin/env python3
"""What bench/data.sh needs: made-up files of the reference job's size, and a command's memory watched from outside.

    data.py windows FILE SAMPLES [deflate]   an .npz of windows 50x15, 20x8 and a vector of 64, as numpy.savez writes it
    data.py bars FILE BARS [SECONDS]         bars of a minute, or so many seconds, as MetaTrader's Python API gives them
    data.py watch COMMAND...                 runs it; prints seconds, CPU seconds and the peak of anonymous memory

It needs nothing but Python itself.
"""
import array
import os
import random
import resource
import subprocess
import sys
import time
import zipfile


def header(descr, shape):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def numbers(count, seed):
    """Random f32 of about market size; a block of them is repeated with a shift, which is enough for copies and sums."""
    rng = random.Random(seed)
    block = array.array("f", (rng.gauss(0, 1) for _ in range(100003)))
    out = array.array("f")
    while len(out) < count:
        out.extend(block)
    return memoryview(out[:count].tobytes())


def write_windows(archive, name, series, rows, samples, steps, columns):
    width = 4 * columns
    with archive.open(name + ".npy", "w", force_zip64=True) as out:
        out.write(header("<f4", (samples, steps, columns)))
        for first in range(0, samples, 1024):
            last = min(first + 1024, samples)
            out.write(b"".join(series[rows(i) * width:(rows(i) + steps) * width] for i in range(first, last)))


def vector(samples):
    """32 signals of -1, 0, 1 and 32 strengths in 0..1, from one repeated block of samples."""
    rng = random.Random(3)
    block = array.array("f")
    for _ in range(4099):
        block.extend(float(rng.randrange(-1, 2)) for _ in range(32))
        block.extend(rng.random() for _ in range(32))
    out = array.array("f")
    while len(out) < 64 * samples:
        out.extend(block)
    return out[:64 * samples].tobytes()


def make_windows(path, samples, deflate):
    fast = numbers((samples + 50) * 15, 1)
    slow = numbers((samples // 12 + 21) * 8, 2)
    rng = random.Random(4)
    method = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
        write_windows(archive, "x_fast", fast, lambda i: i, samples, 50, 15)
        write_windows(archive, "x_slow", slow, lambda i: i // 12, samples, 20, 8)
        with archive.open("x_strategy.npy", "w", force_zip64=True) as out:
            out.write(header("<f4", (samples, 64)) + vector(samples))
        with archive.open("labels.npy", "w", force_zip64=True) as out:
            labels = array.array("q", (rng.randrange(3) for _ in range(samples)))
            out.write(header("<i8", (samples,)) + labels.tobytes())


def make_bars(path, bars, span=60):
    rng = random.Random(5)
    price, stamp = 1900.0, 1420070400
    with open(path, "w") as out:
        out.write("time,open,high,low,close,tick_volume,spread,real_volume\n")
        for _ in range(bars):
            close = price * (1 + rng.gauss(0, 3e-4))
            high, low = max(price, close) + rng.random() * 0.3, min(price, close) - rng.random() * 0.3
            out.write("%d,%.2f,%.2f,%.2f,%.2f,%d,%d,0\n" % (stamp, price, high, low, close, rng.randrange(10, 900), 12))
            price, stamp = round(close, 2), stamp + span


def anonymous(pid):
    try:
        with open("/proc/%d/status" % pid) as status:
            for line in status:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def watch(command):
    began, peak = time.monotonic(), 0
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while child.poll() is None:
        peak = max(peak, anonymous(child.pid))
        time.sleep(0.004)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("%.2f s, %.2f s of CPU time, %.1f MB of anonymous memory at most"
          % (time.monotonic() - began, used.ru_utime + used.ru_stime, peak / 1e6))
    return child.returncode


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "windows":
        make_windows(rest[0], int(rest[1]), "deflate" in rest[2:])
    elif what == "bars":
        make_bars(rest[0], int(rest[1]), *map(int, rest[2:]))
    elif what == "watch":
        sys.exit(watch(rest))
    else:
        sys.exit(__doc__)


main()
