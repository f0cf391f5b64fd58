#!/usr/bin/env python3
"""Weights travel: tradewind's load into PyTorch, PyTorch's into tradewind, and both give the same answers.

usage: torch_load.py [--program FILE] [--device cpu|cuda] [--keep DIR] [CASE...]

Of every case, on made-up data:
  ours    tradewind trains a few steps; the module is built from the run's config.yaml and takes best.safetensors with
          load_state_dict(strict=True), once the scaler's tensors are taken out
  theirs  a module with random weights is written as .safetensors and given to tradewind as train.init_from, with a
          learning rate too small to move a weight
Then `tradewind predict --part all` is compared with what the module gives for the same samples, whose windows numpy
makes (mirror.py). PyTorch computes on the CPU in float32, tradewind in fp32.

The largest difference must be below 1e-5: of probabilities, or of forecasts (of a panel in units of the window's level)
as a share of the largest one. The spread, the standard deviation of an answer over the samples, must be above 1e-3: a
model that says the same of all would prove nothing.
Exit status: 0 all agree, 1 some do not or the program failed, 2 the arguments are wrong.
"""
import argparse
import dataclasses
import pathlib
import sys
import tempfile
from typing import NamedTuple

import numpy as np
import torch

import mirror

LIMIT, LEAST_SPREAD = 1e-5, 1e-3
SAMPLES = 600
SMALL = dict(fast=(20, 7), slow=(9, 4))             # streams of made-up windows: steps and columns


def moved_on(rng, samples, steps, columns, every):
    """Windows [samples, steps, columns] of a series that moves on by a row every so many samples."""
    series = rng.standard_normal((samples // every + steps + 1, columns)).astype(np.float32)
    last = np.arange(samples) // every + steps - 1
    return series[last[:, None] - np.arange(steps - 1, -1, -1)]


@dataclasses.dataclass(frozen=True)
class Windows:
    """Windows in an .npz, which the module is given as they are, and which `tradewind import` makes series of."""
    streams: dict
    vector: int = 0

    def make(self, folder, program):
        rng = np.random.default_rng(5)
        arrays = {f"x_{name}": moved_on(rng, SAMPLES, steps, columns, 1 + 3 * i)
                  for i, (name, (steps, columns)) in enumerate(self.streams.items())}
        if self.vector:
            arrays["x_strategy"] = rng.standard_normal((SAMPLES, self.vector)).astype(np.float32)
        score = next(iter(arrays.values())).reshape(SAMPLES, -1)[:, -3:].sum(1)
        arrays["labels"] = np.digitize(score, (-0.7, 0.7)).astype(np.int32)
        np.savez(folder / "windows.npz", **arrays)
        mirror.tradewind(program, "import", folder / "windows.npz", "-o", folder / "set.npz")
        return folder / "windows.npz"


@dataclasses.dataclass(frozen=True)
class Bars:
    """Five-minute bars through `tradewind import`: its features and strategies, a slow stream, raw columns, padding."""
    options: tuple = ()

    def make(self, folder, program):
        rng = np.random.default_rng(6)
        close = 2000 * np.exp(np.cumsum(rng.standard_normal(5000) * 1e-3))
        spread = np.abs(rng.standard_normal((2, 5000))) * 0.8
        first = np.concatenate([[2000.0], close[:-1]])
        rows = np.stack([1_700_000_100 + 300 * np.arange(5000), first, np.maximum(first, close) + spread[0],
                         np.minimum(first, close) - spread[1], close, rng.integers(50, 900, 5000)], 1)
        np.savetxt(folder / "bars.csv", rows, "%d,%.2f,%.2f,%.2f,%.2f,%d", comments="",
                   header="time,open,high,low,close,tick_volume")
        mirror.tradewind(program, "import", folder / "bars.csv", "--frames", "1h", "-o", folder / "set.npz",
                         *self.options)
        return folder / "set.npz"


@dataclasses.dataclass(frozen=True)
class Panel:
    """Series of different lengths and sizes, as M4 has them, through `tradewind import`: forecasts of their values."""
    horizon: int

    def make(self, folder, program):
        rng = np.random.default_rng(7)
        lines = ["V1," + ",".join(f"V{i}" for i in range(2, 142))]
        for k in range(12):
            n = 60 + 7 * k
            values = 10.0 ** (k % 5) * (5 + np.sin(np.arange(n) * np.pi / 6 + k) + 0.2 * rng.standard_normal(n))
            lines.append(f"S{k}," + ",".join([f"{v:.6g}" for v in values] + [""] * (140 - n)))
        (folder / "panel.csv").write_text("\n".join(lines) + "\n")
        mirror.tradewind(program, "import", folder / "panel.csv", "--horizon", self.horizon, "-o", folder / "set.npz")
        return folder / "set.npz"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    data: object
    settings: tuple


CASES = (
    Case("lstm", Bars(), ("model.kind=lstm", "model.hidden.fast=32", "model.hidden.slow=16")),
    Case("lstm-deep", Windows(dict(fast=(20, 7), slow=(9, 4), day=(5, 3)), 12),
         ("model.kind=lstm", "model.layers=2", "model.hidden.fast=24", "model.hidden.slow=9", "model.hidden.day=5")),
    Case("lstm-bare", Windows(dict(fast=(33, 5))), ("model.kind=lstm", "model.head=0", "data.scale=standard")),
    Case("mlp", Windows(SMALL, 12), ("model.kind=mlp", "model.widths=64-32", "model.activation=relu")),
    Case("mlp-plain", Bars(), ("model.kind=mlp", "model.widths=48", "model.activation=gelu", "model.dropout=0")),
    Case("transformer", Windows(dict(fast=(20, 7))),
         ("model.kind=transformer", "model.hidden.fast=32", "model.heads=4", "model.layers=2", "model.pooling=mean")),
    Case("transformer-causal", Windows(dict(fast=(20, 7))),
         ("model.kind=transformer", "model.hidden.fast=32", "model.heads=4", "model.layers=2", "model.pooling=last",
          "model.causal=true", "model.activation=gelu", "model.head=0")),
    Case("transformer-mixed", Windows(SMALL, 12),
         ("model.kind=transformer", "model.hidden.fast=32", "model.hidden.slow=16", "model.heads=8", "model.layers=1",
          "model.ff=40", "model.pooling=mean", "model.causal=true")),
    Case("transformer-bars", Bars(),
         ("model.kind=transformer", "model.hidden.fast=32", "model.hidden.slow=16", "model.heads=4", "model.layers=2",
          "model.pooling=last")),
    Case("nbeats-classes", Windows(SMALL, 12),
         ("model.kind=nbeats", "model.stacks=[generic]", "model.blocks=3", "model.width=48", "model.layers=2",
          "model.horizon=7")),
    Case("nbeats-waves", Windows(dict(fast=(24, 1))),
         ("model.kind=nbeats", "model.stacks=[trend, seasonality]", "model.blocks=2", "model.width=32",
          "model.layers=3", "model.horizon=12", "model.degree=3", "model.head=0")),
    Case("nbeats-generic", Panel(6),
         ("model.kind=nbeats", "model.stacks=[generic]", "model.blocks=3", "model.width=48", "data.windows.series=24")),
    Case("nbeats-basis", Panel(12),
         ("model.kind=nbeats", "model.stacks=[trend, seasonality]", "model.blocks=2", "model.width=48",
          "data.windows.series=30", "train.loss=smape")),
    Case("nbeats-quantile", Panel(6),
         ("model.kind=nbeats", "model.stacks=[generic, trend]", "model.blocks=1", "model.width=48",
          "data.windows.series=24", "train.loss=quantile")),
    Case("lstm-forecast", Bars(("--label", "forecast", "--horizon", 5)), ("model.kind=lstm", "train.loss=huber")),
    Case("transformer-forecast", Bars(("--label", "forecast", "--horizon", 5)),
         ("model.kind=transformer", "model.hidden.fast=32", "model.hidden.slow=16", "model.heads=4", "model.layers=1",
          "train.loss=quantile", "train.quantiles=[0.2, 0.5, 0.8]")),
)


class Row(NamedTuple):
    parameters: int
    samples: int
    spread: float       # standard deviation of an answer over the samples: what agreement is worth
    difference: float   # the largest


class Trial:
    """One case in one folder: its set, its runs, its comparisons."""

    def __init__(self, case, folder, program, device):
        self.case, self.folder, self.program, self.device = case, folder, program, device
        folder.mkdir(parents=True, exist_ok=True)
        self.windows = case.data.make(folder, program)  # what numpy reads; tradewind reads set.npz
        (folder / "run.yaml").write_text("data:\n  set: set.npz\n")

    def train(self, name, *settings):
        """The run's directory. The batch does not divide the samples."""
        run = self.folder / name
        mirror.tradewind(self.program, "train", self.folder / "run.yaml", f"data.set={self.folder / 'set.npz'}",
                         f"run.dir={run}", "train.batch_size=48", "data.split.embargo=5",
                         "gpu_optimization.use_mixed_precision=false", *self.case.settings, *settings, "-q",
                         "--device", self.device)
        return run

    def compare(self, run, model=None):
        """Of a run: the model with the best weights, or with its own, beside `predict`. A row of the table."""
        description = mirror.read_description(run / "config.yaml")
        data = mirror.Data(self.windows, description)
        weights = mirror.load(run / "best.safetensors")
        if model is None:
            model = mirror.build_model(description, data)
            mirror.load_weights(model, weights)
        mirror.tradewind(self.program, "predict", run, "--part", "all", "-o", run / "p.npz", "-q", "--device",
                         self.device)
        given = np.load(run / "p.npz")
        told, _ = mirror.forecasts(data, description)
        ours = given["forecast" if told else "probability"].reshape(data.samples, -1)
        theirs, unit = mirror.answers(model, data, description, np.arange(data.samples), mirror.saved_scaler(weights))
        unit = unit * np.abs(theirs / unit).max() if told else unit
        return Row(sum(p.numel() for p in model.parameters()), len(ours), float((theirs / unit).std(0).max()),
                   float(np.abs((ours - theirs) / unit).max()))

    def ours(self):
        return self.compare(self.train("ours", "train.epochs=2"))

    def theirs(self):
        """PyTorch's own initial weights, moved a little so that none is 0 or 1."""
        run = self.folder / "ours"
        description = mirror.read_description(run / "config.yaml")
        torch.manual_seed(1)
        model = mirror.build_model(description, mirror.Data(self.windows, description))
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * torch.randn(p.shape))
        state = {name: p.numpy() for name, p in model.state_dict().items()}
        mirror.save(state, self.folder / "torch.safetensors")
        run = self.train("theirs", "train.epochs=1", "train.optimizer.lr=1e-30",
                         f"train.init_from={self.folder / 'torch.safetensors'}")
        kept = mirror.load(run / "best.safetensors")
        for name, value in state.items():
            if not np.array_equal(kept[name], value):
                sys.exit(f"torch_load.py: {self.case.name}: {name} is not what was given as train.init_from")
        return self.compare(run, model)


def parse():
    p = argparse.ArgumentParser(description="tradewind's weights in PyTorch and PyTorch's in tradewind")
    p.add_argument("--program", type=pathlib.Path, default=mirror.PROGRAM, help="tradewind (default build/tradewind)")
    p.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where tradewind computes")
    p.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep sets and runs there")
    p.add_argument("case", nargs="*", metavar="CASE", help="default: all of " + ", ".join(c.name for c in CASES))
    a = p.parse_intermixed_args()
    unknown = set(a.case) - {c.name for c in CASES}
    if unknown:
        p.error(f"no case {', '.join(sorted(unknown))}")
    if not a.program.exists():
        p.error(f"{a.program}: there is no program; build it (make) or name it with --program")
    return a


def check(case, folder, a):
    """Prints the case's two rows; whether both agree."""
    trial, good = Trial(case, folder / case.name, a.program, a.device), True
    for way in (trial.ours, trial.theirs):
        row = way()
        ok = row.difference < LIMIT and row.spread > LEAST_SPREAD
        good &= ok
        print(f"| {case.name} | {way.__name__} | {row.parameters:,} | {row.samples:,} | {row.spread:.1e} | "
              f"{row.difference:.1e} | {'yes' if ok else 'NO'} |", flush=True)
    return good


def main():
    a = parse()
    print(f"tradewind on {a.device} in fp32, PyTorch {torch.__version__} on the CPU\n")
    print("| case | weights | parameters | samples | spread | largest difference | ok |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        good = [check(case, a.keep or pathlib.Path(scratch), a) for case in CASES if not a.case or case.name in a.case]
    print(f"\n{sum(good)} of {len(good)} cases agree")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
