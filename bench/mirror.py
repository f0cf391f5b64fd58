"""What tradewind does with a dataset and a description, written again with numpy and PyTorch.

torch_load.py and gold.py compare the program with this. It follows the documented rules (doc/data.md, src/data/split.h,
src/data/scaler.h, src/base/rng.h) and shares no code with the program: a mistake would have to be made twice.
Sets may be dataset files of `tradewind import` or an .npz of windows. Needs numpy and PyTorch 1.13 or newer.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
import torch.nn as nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "golden"))

from models import Lstm, Mlp, NBeats, Transformer  # noqa: E402
from tensors import load, save  # noqa: E402,F401

PROGRAM = ROOT / "build" / "tradewind"
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}
U32 = 0xFFFFFFFF


def tradewind(program, *words):
    """Runs the program; its lines as text, or SystemExit with what it said."""
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join([str(program), *map(str, words)])}\n{done.stderr.strip()}")
    return done.stdout.splitlines()


def read_value(text):
    if text.startswith("["):
        return [word.strip() for word in text[1:-1].split(",") if word.strip()]
    return text.strip("\"'")


def read_description(path):
    """A run's config.yaml as nested dicts of strings and lists. It is as the program writes it: a key a line."""
    root = {}
    levels = [root]
    for line in pathlib.Path(path).read_text().splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        key, _, value = line.strip().partition(":")
        del levels[depth + 1:]
        if value.strip():
            levels[depth][key] = read_value(value.strip())
        else:
            levels[depth][key] = {}
            levels.append(levels[depth][key])
    return root


class Stream:
    """Windows of a series, or windows as they are."""

    def __init__(self, name, series=None, row=None, first=None, windows=None, steps=0):
        self.name, self.series, self.row, self.first, self.windows = name, series, row, first, windows
        self.steps = windows.shape[1] if windows is not None else steps
        self.columns = windows.shape[2] if windows is not None else series.shape[1]

    def take(self, samples, scaler=None):
        """[samples, steps, columns]; rows before the series' first are zeros, scaled or not."""
        mean, std = scaler if scaler else (np.float32(0), np.float32(1))
        if self.windows is not None:
            return (self.windows[samples] - mean) / std
        at = self.row[samples][:, None] - np.arange(self.steps - 1, -1, -1)
        there = at >= self.first[samples][:, None]
        x = (self.series[np.where(there, at, 0)] - mean) / std
        return np.where(there[:, :, None], x, np.float32(0))

    def seen(self, samples):
        """Which rows of the series the windows of these samples hold."""
        change = np.zeros(len(self.series) + 1, np.int64)
        np.add.at(change, np.maximum(self.row[samples] - self.steps + 1, self.first[samples]), 1)
        np.add.at(change, self.row[samples] + 1, -1)
        return np.cumsum(change)[:-1] > 0


class Data:
    """A set: streams in their order, the vector or None, label or target, time and end where it has them."""

    def __init__(self, path, description):
        z = np.load(path)
        steps = description["data"].get("windows", {})
        if "tradewind" in z.files:
            about = json.loads(str(z["tradewind"].reshape(-1)[0]))
            self.streams = [self.stream_of(z, s, steps, i) for i, s in enumerate(about["streams"])]
            parts = [z[f"vector{k}"].astype(np.float32) for k in range(about["vector_parts"])]
            self.vector = np.concatenate(parts, 1) if parts else None
        else:
            arrays = {name[2:]: z[name] for name in z.files if name.startswith("x_")}
            self.streams = [Stream(name, windows=x) for name, x in arrays.items() if x.ndim == 3]
            self.vector = next((x for x in arrays.values() if x.ndim == 2), None)
        names = {"label": ("label", "labels"), "target": ("target", "targets"), "time": ("time",), "end": ("end",)}
        for name, spellings in names.items():
            setattr(self, name, next((z[s] for s in spellings if s in z.files), None))
        self.samples = len(self.label if self.label is not None else self.target)
        self.classes = int(self.label.max()) + 1 if self.label is not None else 0

    @staticmethod
    def stream_of(z, about, steps, number):
        name = about["name"]
        parts = [z[f"{name}.series{k}"].astype(np.float32) for k in range(about["parts"])]
        length = about["window"] or int(steps.get(name, 20 if number else 50))
        return Stream(name, np.concatenate(parts, 1), z[name + ".row"], z[name + ".first"], steps=length)

    def inputs(self, samples, scaler=None):
        """What a model is given: a tensor a stream, then the vector."""
        x = [s.take(samples, scaler.get(s.name) if scaler else None) for s in self.streams]
        x += [self.vector[samples]] if self.vector is not None else []
        return [torch.from_numpy(np.ascontiguousarray(v, np.float32)) for v in x]


def split_samples(data, description):
    """Training, validation and test as ranges: shares of all samples, purged by where labels end, then an embargo."""
    o = description["data"]["split"]

    def next_part(last):
        if o["purge"] == "auto":
            past = last
            while past < data.samples and data.time[past] <= data.end[:last].max():
                past += 1
        else:
            past = last + int(o["purge"])
        return past + int(o["embargo"])

    train = int(data.samples * float(o["train"]))
    first = next_part(train)
    last = min(first + int(data.samples * float(o["validation"])), data.samples)
    return range(train), range(first, last), range(min(next_part(last), data.samples), data.samples)


def fit_scaler(data, samples):
    """Mean and deviation of every stream's columns, over the rows that these samples see, each row once."""
    scaler = {}
    for s in data.streams:
        rows = s.series[s.seen(np.asarray(samples))].astype(np.float64)
        mean, std = rows.mean(0), rows.std(0)
        std[(std < 1e-30) | (std < 1e-12 * np.abs(mean))] = 1
        scaler[s.name] = mean.astype(np.float32), std.astype(np.float32)
    return scaler


def saved_scaler(weights):
    """The scaler that a file of weights carries; None where it has none."""
    names = [name.split(".")[1] for name in weights if name.startswith("scaler.") and name.endswith(".mean")]
    return {n: (weights[f"scaler.{n}.mean"], weights[f"scaler.{n}.std"]) for n in names} or None


def class_weights(data, samples, classes):
    """n / (K * count of the class)."""
    count = np.bincount(data.label[np.asarray(samples)], minlength=classes)
    return torch.tensor(len(samples) / (classes * count), dtype=torch.float32)


def philox(key, counter):
    """Philox4x32-10 of one counter."""
    c, k0, k1 = list(counter), key & U32, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & U32, (a >> 32) ^ c[3] ^ k1, a & U32]
        k0, k1 = (k0 + 0x9E3779B9) & U32, (k1 + 0xBB67AE85) & U32
    return c


def mix(x):
    x = ((x ^ x >> 16) * 0x21F0AAAD) & U32
    x = ((x ^ x >> 15) * 0x735A2D97) & U32
    return x ^ x >> 15


def permutation(seed, epoch, count):
    """The order of an epoch's samples: a Feistel network over the next power of two, walked until below `count`."""
    keys = philox(seed, (epoch, 0, 2 << 16, 0))
    bits = max((count - 1).bit_length(), 2)
    low = bits // 2
    order = np.arange(count, dtype=np.uint64)
    todo = np.ones(count, bool)
    while todo.any():
        at = order[todo]
        left, right, width = at >> low, at & ((1 << low) - 1), bits - low
        for i in range(6):
            f = mix((right + (keys[i & 3] + (i >> 2) * 0x9E3779B9)) & U32)
            left, right, width = right, left ^ (f & ((1 << width) - 1)), bits - width
        order[todo] = left << low | right
        todo = order >= count
    return order.astype(np.int64)


def forecasts(data, description):
    """Whether the model forecasts, and how many values a step has."""
    loss = description["train"]["loss"]
    told = loss in ("mse", "mae", "huber", "quantile", "smape", "mase") or (loss == "auto" and data.label is None)
    return told, len(description["train"]["quantiles"]) if loss == "quantile" else 1


def build_model(description, data):
    """The module that a run's description describes, for evaluation, or for training without dropout."""
    m = description["model"]
    told, quantiles = forecasts(data, description)
    horizon = data.target.shape[1] if told else int(m["horizon"])
    outputs = quantiles * horizon if told else data.classes
    vector = data.vector.shape[1] if data.vector is not None else 0
    fuse = dict(vector=vector, projection=int(m["projection"]), head=int(m["head"]), outputs=outputs)
    layers = dict(lstm=1, transformer=3, nbeats=4, mlp=0)[m["kind"]] if m["layers"] == "auto" else int(m["layers"])
    flat = sum(s.steps * s.columns for s in data.streams)
    hidden = {s.name: int(m.get("hidden", {}).get(s.name, 128 if m["kind"] == "transformer" else 16 if i else 32))
              for i, s in enumerate(data.streams)}
    if m["kind"] == "lstm":
        return Lstm({s.name: (s.columns, hidden[s.name]) for s in data.streams}, layers=layers, **fuse)
    if m["kind"] == "mlp":
        sizes = (flat + vector, *map(int, m["widths"].split("-")), outputs)
        return Mlp(sizes, ACTIVATIONS[m["activation"]], float(m["dropout"]))
    if m["kind"] == "transformer":
        return Transformer({s.name: (s.steps, s.columns, hidden[s.name]) for s in data.streams}, int(m["heads"]),
                           layers, 0 if m["ff"] == "auto" else int(m["ff"]), m["activation"], m["causal"] == "true",
                           m["pooling"], **fuse)
    return NBeats(m["stacks"], int(m["blocks"]), flat, horizon, int(m["width"]), layers, int(m["degree"]),
                  int(m["head"]), 0 if told else data.classes, vector, quantiles)


def load_weights(model, weights):
    """Strictly: every parameter by its name and shape, and nothing else but the scaler."""
    state = {name: torch.from_numpy(np.array(v)) for name, v in weights.items() if not name.startswith("scaler.")}
    model.load_state_dict(state, strict=True)


def answers(model, data, description, samples, scaler):
    """Probabilities, or forecasts in the data's units, of a model in evaluation; and the unit that it computes them in.

    That is 1, or for series by themselves the level of a sample's window [samples, 1].
    """
    told, _ = forecasts(data, description)
    level, series = description["data"]["level"], len(data.streams) == 1 and data.streams[0].columns == 1
    levels = told and series and (level == "mean" or level == "auto" and not scaler)
    model.eval()
    out, units = [], []
    with torch.no_grad():
        for part in np.array_split(np.asarray(samples), max(len(samples) // 512, 1)):
            x = data.inputs(part, scaler)
            unit = level_of(x[0]) if levels else torch.ones(len(part))
            if levels:
                x[0] = x[0] / unit[:, None, None]
            y = model(*x)
            out.append(y * unit[:, None] if told else torch.softmax(y, 1))
            units.append(unit[:, None])
    return torch.cat(out).numpy(), torch.cat(units).numpy()


def level_of(x):
    """[B]: the mean size of a window, zeros at its beginning left out; 1 where all is zero."""
    x = x.flatten(1).abs()
    there = torch.cumsum(x, 1) > 0
    size = x.sum(1) / there.sum(1).clamp(min=1)
    return torch.where(size > 0, size, torch.ones_like(size))


def confusion(label, answer, classes):
    """Rows are true classes."""
    return np.bincount(classes * label + answer, minlength=classes * classes).reshape(classes, classes)


def mcc(matrix):
    m = matrix.astype(np.float64)
    s, c, p, t = m.sum(), np.trace(m), m.sum(0), m.sum(1)
    bottom = np.sqrt((s * s - p @ p) * (s * s - t @ t))
    return (c * s - p @ t) / bottom if bottom > 0 else 0.0
