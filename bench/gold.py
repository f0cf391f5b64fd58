#!/usr/bin/env python3
"""The reference LSTM on real gold bars, by tradewind and by PyTorch: the same validation losses, the same score.

usage: gold.py [DATA] [key=value...] [--program FILE] [--device cpu|cuda] [--epochs N] [--samples N]
               [--double] [--keep DIR]

DATA (or TRADEWIND_DATA) is a folder with XAUUSD_H1.csv and XAUUSD_H4.csv. Both sides train examples/gold.yaml in fp32,
without dropout, whose random numbers are each program's own. tradewind runs as its users run it, after `tradewind
import`. PyTorch is given its initial weights and the file that import wrote; windows, split with purge and embargo,
scaler, class weights, order of samples, loss, clipping and AdamW are those of mirror.py and of PyTorch itself.
Settings change both sides: those of the model, windows and split, train.batch_size, clip_norm, class_weights,
label_smoothing and seed, and the numbers of AdamW.

Two runs that differ by rounding drift apart. The validation loss must be the same within 0.005 % after the first epoch
(another order of samples alone moves it by 0.2 %), within 1 % after every further one, and the MCC on the test part
after the last epoch within 0.01. --double lets PyTorch compute in float64: what each fp32 run drifts from.
Exit status: 0 they agree, 1 they do not or the program failed, 2 the arguments are wrong.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

import mirror

FIRST_LIMIT, LOSS_LIMIT, MCC_LIMIT = 5e-5, 0.01, 0.01
WARM_UP = 1000                      # bars that import may leave out at the beginning


def import_gold(folder, a):
    """gold.npz, of the last --samples hours where that is given."""
    bars = a.data / "XAUUSD_H1.csv"
    if a.samples:
        head, *rows = bars.read_text().splitlines(True)
        bars = folder / "XAUUSD_H1.csv"
        bars.write_text("".join([head] + rows[-(a.samples + WARM_UP):]))
    mirror.tradewind(a.program, "import", bars, a.data / "XAUUSD_H4.csv", "-o", folder / "gold.npz")


class Ours:
    """tradewind's two runs: one of a single epoch that moves no weight, for the initial ones, and the real one."""

    def __init__(self, folder, a):
        self.folder, self.a = folder, a
        self.start = self.train("start", "train.epochs=1", "train.optimizer.lr=1e-30")[0]
        began = time.perf_counter()
        self.run, lines = self.train("gold", f"train.epochs={a.epochs}", f"train.patience={a.epochs}")
        self.seconds = time.perf_counter() - began
        self.epochs = [e for e in map(json.loads, lines) if "epoch" in e]

    def train(self, name, *settings):
        run = self.folder / name
        lines = mirror.tradewind(self.a.program, "train", mirror.ROOT / "examples" / "gold.yaml",
                                 f"data.set={self.folder / 'gold.npz'}", f"run.dir={run}", "model.dropout=0",
                                 "gpu_optimization.use_mixed_precision=false", *self.a.settings, *settings, "--json",
                                 "--device", self.a.device)
        return run, lines

    def test(self):
        """What the last weights, not the best, say of the test part."""
        mirror.tradewind(self.a.program, "predict", self.run / "last.safetensors", "--part", "test", "-o",
                         self.folder / "p.npz", "-q", "--device", self.a.device)
        return np.load(self.folder / "p.npz")


class Theirs:
    """The same in PyTorch."""

    def __init__(self, ours, a):
        self.d = mirror.read_description(ours.run / "config.yaml")
        self.data = mirror.Data(ours.folder / "gold.npz", self.d)
        self.train, self.validation, self.test = mirror.split_samples(self.data, self.d)
        self.scaler = mirror.fit_scaler(self.data, self.train)
        self.classes, self.place = self.data.classes, dict(device=a.device, dtype=a.type)
        self.weight = torch.ones(self.classes).to(**self.place)
        if self.d["train"]["class_weights"] == "balanced":
            self.weight = mirror.class_weights(self.data, self.train, self.classes).to(**self.place)
        self.model = mirror.build_model(self.d, self.data)
        mirror.load_weights(self.model, mirror.load(ours.start / "best.safetensors"))
        self.model.to(**self.place)
        t = self.d["train"]
        o = t["optimizer"]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=float(o["lr"]), eps=float(o["eps"]),
                                           betas=(float(o["beta1"]), float(o["beta2"])),
                                           weight_decay=float(o["weight_decay"]))
        self.batch, self.seed, self.clip = int(t["batch_size"]), int(t["seed"]), float(t["clip_norm"])
        self.smoothing = float(t["label_smoothing"])

    def loss(self, samples):
        """Scores, the sum of weighted losses and the sum of the weights."""
        label = torch.from_numpy(self.data.label[samples].astype(np.int64)).to(self.place["device"])
        scores = self.model(*(x.to(**self.place) for x in self.data.inputs(samples, self.scaler)))
        loss = F.cross_entropy(scores, label, self.weight, reduction="sum", label_smoothing=self.smoothing)
        return scores, loss, self.weight[label].sum()

    def train_epoch(self, epoch):
        order = self.train.start + mirror.permutation(self.seed, epoch, len(self.train))
        total = norm = 0.0
        self.model.train()
        for first in range(0, len(order), self.batch):
            self.optimizer.zero_grad()
            _, loss, weight = self.loss(order[first:first + self.batch])
            (loss / weight).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip or float("inf"))
            self.optimizer.step()
            total, norm = total + loss.item(), norm + weight.item()
        return total / norm

    def evaluate(self, part):
        """The loss, and probabilities."""
        total, norm, out = 0.0, 0.0, []
        self.model.eval()
        with torch.no_grad():
            for first in range(part.start, part.stop, 2048):
                scores, loss, weight = self.loss(np.arange(first, min(first + 2048, part.stop)))
                total, norm = total + loss.item(), norm + weight.item()
                out.append(torch.softmax(scores, 1).cpu())
        return total / norm, torch.cat(out).numpy()


def check_inputs(ours, theirs, test):
    """The scaler and the test part must be the same before anything is worth comparing."""
    saved = mirror.saved_scaler(mirror.load(ours.run / "best.safetensors"))
    off = max(float(np.abs((a - b) / saved[name][1]).max()) for name in saved
              for a, b in zip(theirs.scaler[name], saved[name]))
    if off > 1e-6:
        sys.exit(f"gold.py: the scaler differs by {off:.1e} of a deviation")
    if list(theirs.test) != test["sample"].tolist():
        sys.exit("gold.py: the test part is of other samples")
    return off


def compare_curves(ours, theirs):
    """Trains PyTorch; prints both curves; the relative differences of validation losses, epoch by epoch."""
    print("| epoch | train loss, ours | PyTorch | validation loss, ours | PyTorch | difference |")
    print("|---|---|---|---|---|---|")
    differences = []
    for e in ours.epochs:
        train = theirs.train_epoch(e["epoch"])
        validation, _ = theirs.evaluate(theirs.validation)
        difference = abs(e["validation_loss"] / validation - 1)
        differences.append(difference)
        print(f"| {e['epoch']} | {e['train_loss']:.6f} | {train:.6f} | {e['validation_loss']:.6f} | {validation:.6f} | "
              f"{100 * difference:.4f} % |", flush=True)
    return differences


def compare(folder, a):
    import_gold(folder, a)
    ours = Ours(folder, a)
    test = ours.test()
    theirs = Theirs(ours, a)
    off = check_inputs(ours, theirs, test)
    print(f"tradewind in fp32 and PyTorch {torch.__version__} in {str(a.type)[6:]}, both on {a.device}; "
          f"{theirs.data.samples:,} samples: {len(theirs.train):,} to train, {len(theirs.validation):,} to validate, "
          f"{len(theirs.test):,} to test; scalers differ by {off:.0e}\n")
    began = time.perf_counter()
    differences = compare_curves(ours, theirs)
    seconds = time.perf_counter() - began
    _, probability = theirs.evaluate(theirs.test)
    label = theirs.data.label[np.asarray(theirs.test)]
    scores = [mirror.mcc(mirror.confusion(label, p.argmax(1), theirs.classes))
              for p in (test["probability"], probability)]
    apart = abs(scores[0] - scores[1])
    print(f"\nvalidation losses differ by {100 * differences[0]:.4f} % after the first epoch, {100 * FIRST_LIMIT:.3f} "
          f"% allowed; by {100 * max(differences):.4f} % at most, {100 * LOSS_LIMIT:.0f} % allowed")
    print(f"test MCC after the last epoch: ours {scores[0]:.4f}, PyTorch {scores[1]:.4f}, difference {apart:.4f}, "
          f"{MCC_LIMIT} allowed; probabilities differ by {np.abs(test['probability'] - probability).max():.1e} at most")
    print(f"seconds: ours {ours.seconds:.1f}, PyTorch {seconds:.1f}")
    return 0 if differences[0] < FIRST_LIMIT and max(differences) < LOSS_LIMIT and apart < MCC_LIMIT else 1


def parse():
    p = argparse.ArgumentParser(description="the reference LSTM on gold bars, by tradewind and by PyTorch")
    p.add_argument("words", nargs="*", metavar="DATA | key=value",
                   help="folder with XAUUSD_H1.csv and XAUUSD_H4.csv (default: TRADEWIND_DATA); settings of the run")
    p.add_argument("--program", type=pathlib.Path, default=mirror.PROGRAM, help="tradewind (default build/tradewind)")
    p.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where both compute")
    p.add_argument("--epochs", type=int, default=5, help="default: 5")
    p.add_argument("--samples", type=int, default=0, help="take the last so many hours, about (default: all)")
    p.add_argument("--double", dest="type", action="store_const", const=torch.float64, default=torch.float32,
                   help="PyTorch in float64")
    p.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep the set and the runs there")
    a = p.parse_intermixed_args()
    a.settings = [word for word in a.words if "=" in word]
    folders = [word for word in a.words if "=" not in word] or [os.environ.get("TRADEWIND_DATA")]
    if len(folders) > 1 or not folders[0]:
        p.error("one folder with bars is needed; name it, or set TRADEWIND_DATA")
    a.data = pathlib.Path(folders[0])
    for file in (a.data / "XAUUSD_H1.csv", a.data / "XAUUSD_H4.csv", a.program):
        if not file.exists():
            p.error(f"{file}: there is no such file")
    return a


def main():
    a = parse()
    torch.backends.cudnn.allow_tf32 = False
    if a.keep:
        a.keep.mkdir(parents=True, exist_ok=True)
        return compare(a.keep, a)
    with tempfile.TemporaryDirectory() as scratch:
        return compare(pathlib.Path(scratch), a)


if __name__ == "__main__":
    sys.exit(main())
