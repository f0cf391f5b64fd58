#!/usr/bin/env python3
"""TensorBoard shows the numbers of a run: its own reader loads the event file that `tradewind watch RUN --tensorboard`
wrote, and every scalar is compared with the tables that `tradewind watch RUN --csv TABLE` prints.

usage: tensorboard_check.py [--program FILE] [--reader tensorboard|format] RUN

RUN is the directory of a run that has ended. Where it has no event file, one is made first.
  --reader tensorboard  tensorboard.backend.event_processing.event_accumulator, as TensorBoard itself reads (the default)
  --reader format       test/watch/tfevents.py, which knows the format alone: for machines without TensorBoard

Tag, step and value are compared, values as 32-bit floats. A table's text has 15 digits, so a number may be the float
on either side where the text lies that close to the middle of two.
Exit status: 0 all equal, 1 some are not or the program failed, 2 the arguments are wrong.
"""
import argparse
import collections
import csv
import io
import math
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = 5e-15  # relative error of a number of 15 digits
MOMENT = 2e-5   # the same of a moment, in seconds since 1970
SHOWN = 40      # differences that are printed

STEPS = {"loss": "loss_mean", "loss_min": "loss_min", "loss_max": "loss_max", "grad_norm": "grad_norm", "lr": "lr"}
SAMPLES = ("memory_process", "memory_used", "utilisation", "temperature", "power", "clock")


class Trouble(Exception):
    """Why nothing can be said."""


def told(command, **more):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    except OSError as why:
        raise Trouble(f"{command[0]}: cannot be started: {why.strerror}; name the program with --program") from why
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise Trouble(f"{' '.join(str(word) for word in command)}: status {done.returncode}: {last}")
    return done.stdout


def table(program, run, name):
    return list(csv.DictReader(io.StringIO(told([program, "watch", run, "--csv", name]), newline="")))


def number(cell):
    """None for a cell that holds no finite number: such are not written."""
    value = float(cell) if cell not in (None, "") else math.nan
    return value if math.isfinite(value) else None


def as_float(value):
    """The 32-bit float nearest to a number; beyond the largest one, infinity."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def may_be(text_value):
    return {as_float(text_value * (1 + by)) for by in (-DIGITS, 0, DIGITS)}


class Expected:
    """Scalars that the tables ask for: tag to a list of (steps, values), any of each."""

    def __init__(self):
        self.of = collections.defaultdict(list)

    def put(self, tag, steps, cell):
        value = number(cell)
        if value is not None:
            self.of[tag].append((steps, may_be(value)))

    def put_epochs(self, epochs, metrics):
        step_of = {row["epoch"]: int(row["step"]) for row in epochs}
        for row in epochs:
            for name in ("seconds", "samples_per_s"):
                self.put(f"epoch/{name}", {int(row["step"])}, row[name])
        for row in sorted(metrics, key=lambda row: int(row["epoch"])):
            tag = f"{row['part']}/{row['name']}" if row["part"] else row["name"]
            self.put(tag, {step_of.get(row["epoch"], int(row["epoch"]))}, row["value"])

    def put_steps(self, steps):
        for row in steps:
            for name, column in STEPS.items():
                self.put(f"steps/{name}", {int(row["step"])}, row[column])

    def put_samples(self, samples, started):
        for row in samples:
            past = float(row["time"]) - started
            seconds = {int(max(past + by, 0)) for by in (-MOMENT, MOMENT)}
            for name in SAMPLES:
                self.put(f"device/{name}", seconds, row.get(name))


def expected(program, run):
    want = Expected()
    started = float(table(program, run, "run")[0]["started"])
    want.put_epochs(table(program, run, "epochs"), table(program, run, "metrics"))
    want.put_steps(table(program, run, "steps"))
    want.put_samples(table(program, run, "samples"), started)
    return dict(want.of)


def by_tensorboard(file):
    try:
        from tensorboard.backend.event_processing import event_accumulator
    except ImportError as why:
        raise Trouble(f"TensorBoard cannot be loaded ({why}); pip install tensorboard, or --reader format") from why
    events = event_accumulator.EventAccumulator(str(file.parent), size_guidance={event_accumulator.SCALARS: 0})
    events.Reload()
    tags = events.Tags()
    of = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags.get("scalars", ())}
    for tag in tags.get("tensors", ()):  # some versions turn scalars into tensors of one number
        from tensorboard.util import tensor_util
        of[tag] = [(event.step, float(tensor_util.make_ndarray(event.tensor_proto))) for event in events.Tensors(tag)]
    return of


def by_format(file):
    of = collections.defaultdict(list)
    reader = HERE.parent / "test" / "watch" / "tfevents.py"
    for line in told([sys.executable, reader, file]).splitlines():
        tag, step, value = line.rsplit(" ", 2)
        of[tag].append((int(step), float(value)))
    return dict(of)


READERS = {"tensorboard": by_tensorboard, "format": by_format}


def event_file(program, run):
    """The event file of a run; one is made where there is none."""
    for last in (False, True):
        files = sorted(run.glob("events.out.tfevents.*"))
        if len(files) > 1:
            raise Trouble(f"{run}: has {len(files)} event files; remove those of earlier runs")
        if files:
            return files[0]
        if not last:
            told([program, "watch", run, "--tensorboard"])
    raise Trouble(f"{run}: has no event file")


def differences(want, seen):
    """Sentences, one for each scalar that is not as it should be."""
    for tag in sorted(set(want) | set(seen)):
        asked, given = want.get(tag, []), seen.get(tag, [])
        if len(asked) != len(given):
            yield f"{tag}: {len(given)} scalars, and the tables have {len(asked)}"
            continue
        for (steps, values), (step, value) in zip(asked, given):
            if step not in steps:
                yield f"{tag}: step {step}, and the tables have {sorted(steps)[0]}"
            if as_float(value) not in values:
                yield f"{tag}: step {step}: {value!r}, and the tables have {sorted(values)[0]!r}"


def check(program, run, reader):
    file = event_file(program, run)
    want, seen = expected(program, run), READERS[reader](file)
    scalars = sum(len(all_of) for all_of in seen.values())
    wrong = list(differences(want, seen))
    for line in wrong[:SHOWN]:
        print(line)
    if not scalars:
        print("there is no scalar at all")
    if wrong or not scalars:
        print(f"{scalars} scalars in {len(seen)} tags, {len(wrong)} differences")
        return 1
    print(f"{scalars} scalars in {len(seen)} tags, all equal")
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--program", default=HERE.parent / "build" / "tradewind")
    parser.add_argument("--reader", choices=sorted(READERS), default="tensorboard")
    given = parser.parse_args()
    try:
        return check(given.program, given.run, given.reader)
    except Trouble as why:
        print(f"tensorboard_check: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
