#!/usr/bin/env python3
"""Makes the PyTorch dumps that test_golden compares with: CASE.safetensors for every case below.

usage: make_golden.py OUTDIR        needs torch and safetensors; runs on the CPU in a few seconds

Every file holds, in float32 unless said otherwise:
  input.NAME         the inputs of the model
  label              int32 [B]
  weight             [B], the weight of each row; the last rows have 0, as the tail of an epoch has
  class_weight       [K], where the case uses it
  param.NAME         the initial parameters under their state_dict names
  output, output64   logits [B,K] computed in float32, and in float64 then rounded
  loss               scalar: sum_b weight_b * ce_b / sum_b weight_b * class_weight[label_b]
  grad.NAME          the gradient of loss in float32; grad.input.NAME where inputs are differentiated
  grad64.NAME        the same computed in float64, then rounded
  losses, grad_norm  [10]: loss and gradient norm (before clipping) of ten AdamW steps on this batch
  param_after.NAME   the parameters after these ten steps, computed in float32

ce_b already contains class_weight: it is F.cross_entropy(reduction="none", weight=class_weight), so with label
smoothing s it is -(1-s) * cw[label] * logp[label] - s/K * sum_k cw[k] * logp[k].
The metadata hold the settings. Dropout has probability 0: the project draws its own random numbers.
lstm_reference has no grad.NAME, which keeps the file under the size limit; grad64.NAME is the better reference.
"""
import copy
import dataclasses
import pathlib
import sys
from typing import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

STEPS = 10
ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
CLIP_NORM = 1.0
SIZE_LIMIT = 400_000


class Lstm(nn.Module):
    """Two bidirectional LSTMs, read at their final states, and a projected vector, into a two-layer head."""

    def __init__(self, fast, slow, vector, hidden_fast, hidden_slow, projection, head, classes):
        super().__init__()
        joined = 2 * hidden_fast + 2 * hidden_slow + projection
        self.fast = nn.LSTM(fast, hidden_fast, batch_first=True, bidirectional=True)
        self.slow = nn.LSTM(slow, hidden_slow, batch_first=True, bidirectional=True)
        self.strat = nn.Sequential(nn.Linear(vector, projection), nn.ReLU(), nn.Dropout(0.0))
        self.head = nn.Sequential(nn.Linear(joined, head), nn.ReLU(), nn.Dropout(0.0), nn.Linear(head, classes))

    def forward(self, fast, slow, vector):
        _, (hf, _) = self.fast(fast)
        _, (hs, _) = self.slow(slow)
        return self.head(torch.cat([hf[0], hf[1], hs[0], hs[1], self.strat(vector)], 1))


class LstmDeep(nn.Module):
    """Two bidirectional layers with given initial states; the mean of their output over time, projected."""

    def __init__(self, features=6, hidden=7, layers=2, classes=3):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=layers, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, x, h0, c0):
        y, _ = self.lstm(x, (h0, c0))
        return self.out(y.mean(1))


class Mlp(nn.Module):
    def __init__(self, activation, sizes=(13, 31, 17, 3)):
        super().__init__()
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Linear(a, b), activation()]
        self.net = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.net(x)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    description: str
    make: Callable[[], nn.Module]
    inputs: dict                    # name -> shape, in the order of forward's arguments
    batch: int
    tail: int                       # so many rows at the end have weight 0
    seed: int
    class_weight: tuple = ()        # empty: all classes weigh 1
    label_smoothing: float = 0.0
    gain: float = 1.0               # factor on the initial parameters; large enough, clipping is at work
    input_grads: tuple = ()         # inputs whose gradients are stored as well
    keep_grad: bool = True          # store grad.NAME beside grad64.NAME


CASES = (
    Case("lstm_reference", "BiLSTM 32 over 50x15, BiLSTM 16 over 20x8, vector 64 to 32, head 128-64-3",
         lambda: Lstm(15, 8, 64, 32, 16, 32, 64, 3),
         dict(fast=(8, 50, 15), slow=(8, 20, 8), vector=(8, 64)), batch=8, tail=2, seed=1,
         class_weight=(1.25, 0.5, 1.75), keep_grad=False),
    Case("lstm_small", "the same with odd sizes: BiLSTM 9 over 7x5, BiLSTM 5 over 3x2, vector 6 to 4, head 32-10-3",
         lambda: Lstm(5, 2, 6, 9, 5, 4, 10, 3),
         dict(fast=(5, 7, 5), slow=(5, 3, 2), vector=(5, 6)), batch=5, tail=1, seed=2,
         class_weight=(0.75, 1.5, 1.0), label_smoothing=0.1),
    Case("lstm_deep", "two layers of BiLSTM 7 over 9x6 with initial states; mean over time, linear 14-3",
         LstmDeep,
         dict(x=(4, 9, 6), h0=(4, 4, 7), c0=(4, 4, 7)), batch=4, tail=1, seed=3,
         input_grads=("h0", "c0")),
    Case("mlp", "linear and ReLU, 13-31-17-3",
         lambda: Mlp(nn.ReLU),
         dict(x=(33, 13)), batch=33, tail=4, seed=4, gain=3.0),
    Case("mlp_gelu", "linear and GELU (erf), 13-31-17-3",
         lambda: Mlp(nn.GELU),
         dict(x=(33, 13)), batch=33, tail=4, seed=5,
         class_weight=(0.75, 1.5, 1.0), label_smoothing=0.1),
)


@dataclasses.dataclass
class Batch:
    inputs: dict
    label: torch.Tensor
    weight: torch.Tensor
    class_weight: torch.Tensor

    def double(self):
        return Batch({k: v.double() for k, v in self.inputs.items()}, self.label, self.weight.double(),
                     self.class_weight.double())


def make_batch(case, classes):
    """Random inputs in every row, the tail included: only its weight may keep it out of the loss."""
    inputs = {name: torch.randn(shape) for name, shape in case.inputs.items()}
    label = torch.randperm(case.batch) % classes
    weight = torch.ones(case.batch)
    weight[1] = 0.5
    weight[case.batch - case.tail:] = 0.0
    return Batch(inputs, label, weight, torch.tensor(case.class_weight or (1.0,) * classes))


def loss_of(case, output, batch):
    ce = F.cross_entropy(output, batch.label, weight=batch.class_weight, reduction="none",
                         label_smoothing=case.label_smoothing)
    return (ce * batch.weight).sum() / (batch.weight * batch.class_weight[batch.label]).sum()


def forward_backward(case, model, batch):
    """The output, the loss and the gradients by name, those of inputs as input.NAME, in the model's precision."""
    inputs = {k: v.clone().requires_grad_(k in case.input_grads) for k, v in batch.inputs.items()}
    wanted = dict(model.named_parameters())
    wanted.update({"input." + k: inputs[k] for k in case.input_grads})
    output = model(*inputs.values())
    loss = loss_of(case, output, batch)
    grads = torch.autograd.grad(loss, list(wanted.values()))
    return output.detach(), loss.detach(), dict(zip(wanted, grads))


def train(case, model, batch):
    """Ten AdamW steps on one batch; changes the model."""
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(case, model(*batch.inputs.values()), batch)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM).detach())
        losses.append(loss.detach())
        optimizer.step()
    return torch.stack(losses), torch.stack(norms)


def metadata_of(case):
    return {
        "case": case.name,
        "description": case.description,
        "torch": str(torch.__version__),
        "seed": str(case.seed),
        "label_smoothing": str(case.label_smoothing),
        "loss": "sum(weight * ce) / sum(weight * class_weight[label])",
        "optimizer": "adamw lr 1e-3 betas 0.9 0.999 eps 1e-8 weight_decay 0.01",
        "clip_norm": str(CLIP_NORM),
        "steps": str(STEPS),
    }


def make(case, directory):
    torch.manual_seed(case.seed)
    model = case.make()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(case.gain)
    batch = make_batch(case, classes=3)
    tensors = {"input." + k: v for k, v in batch.inputs.items()}
    tensors |= {"label": batch.label.int(), "weight": batch.weight}
    if case.class_weight:
        tensors["class_weight"] = batch.class_weight
    tensors |= {"param." + k: v.detach().clone() for k, v in model.named_parameters()}

    output, loss, grads = forward_backward(case, model, batch)
    output64, _, grads64 = forward_backward(case, copy.deepcopy(model).double(), batch.double())
    tensors |= {"output": output, "output64": output64.float(), "loss": loss}
    if case.keep_grad:
        tensors |= {"grad." + k: g for k, g in grads.items()}
    tensors |= {"grad64." + k: g.float() for k, g in grads64.items()}

    losses, norms = train(case, model, batch)
    assert torch.allclose(losses[0], loss, rtol=1e-6), f"{case.name}: one forward pass gave {losses[0]} and {loss}"
    tensors |= {"losses": losses, "grad_norm": norms}
    tensors |= {"param_after." + k: v.detach() for k, v in model.named_parameters()}

    path = directory / (case.name + ".safetensors")
    save_file({k: v.contiguous().clone() for k, v in tensors.items()}, path, metadata=metadata_of(case))
    size = path.stat().st_size
    assert size < SIZE_LIMIT, f"{path}: {size} bytes, {SIZE_LIMIT} allowed"
    error = max(float((grads[k].double() - g).norm() / g.norm()) for k, g in grads64.items())
    print(f"{path.name}: {size} bytes, loss {losses[0]:.6f} to {losses[-1]:.6f}, gradient norm {norms.min():.3f} to "
          f"{norms.max():.3f}, largest relative error of a float32 gradient {error:.1e}")


def main():
    if len(sys.argv) != 2:
        print("make_golden.py: one argument is needed: the directory to write to", file=sys.stderr)
        return 2
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        make(case, directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
