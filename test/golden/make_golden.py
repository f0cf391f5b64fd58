#!/usr/bin/env python3
"""Makes the PyTorch dumps that test_golden compares with: CASE.safetensors for every case below.

usage: make_golden.py OUTDIR [CASE...]   needs torch; runs on the CPU in a few seconds

Every file holds, in float32 unless said otherwise:
  input.NAME         the inputs of the model
  label              int32 [B], of classes; or
  target             [B,H], of forecasts
  weight             [B], the weight of each row; the last rows have 0, as the tail of an epoch has
  class_weight       [K], where the case uses it
  param.NAME         the initial parameters under their state_dict names
  output, output64   logits [B,K] or forecasts [B,H] computed in float32, and in float64 then rounded
  loss               scalar: sum_b weight_b * ce_b / sum_b weight_b * class_weight[label_b], or of forecasts
                     sum_b weight_b * sum_h error_bh / sum_b weight_b * H
  grad.NAME          the gradient of loss in float32; grad.input.NAME where inputs are differentiated
  grad64.NAME        the same computed in float64, then rounded
  losses, grad_norm  [10]: loss and gradient norm (before clipping) of ten AdamW steps on this batch
  param_after.NAME   the parameters after these ten steps, computed in float32

ce_b already contains class_weight: it is F.cross_entropy(reduction="none", weight=class_weight), so with label
smoothing s it is -(1-s) * cw[label] * logp[label] - s/K * sum_k cw[k] * logp[k].
error is F.l1_loss (objective mae) or F.huber_loss with delta 0.5 (objective huber), element by element.
The metadata hold the settings. Dropout has probability 0: the project draws its own random numbers.
lstm_reference has no grad.NAME, which keeps the file under the size limit; grad64.NAME is the better reference.
"""
import copy
import dataclasses
import sys
from typing import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F

import cases
from models import Lstm, LstmDeep, Mlp, NBeats, Transformer
from tensors import save

STEPS = 10
ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
CLIP_NORM = 1.0
SIZE_LIMIT = 400_000


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
    jitter: float = 0.0             # normal noise on the initial parameters, so that none stays at 0 or 1
    objective: str = "cross_entropy"
    horizon: int = 0                # of forecasts
    settings: dict = dataclasses.field(default_factory=dict)  # metadata that test_golden reads


CASES = (
    Case("lstm_reference", "BiLSTM 32 over 50x15, BiLSTM 16 over 20x8, vector 64 to 32, head 128-64-3",
         lambda: Lstm(dict(fast=(15, 32), slow=(8, 16)), vector=64, projection=32, head=64),
         dict(fast=(8, 50, 15), slow=(8, 20, 8), vector=(8, 64)), batch=8, tail=2, seed=1,
         class_weight=(1.25, 0.5, 1.75), keep_grad=False),
    Case("lstm_small", "the same with odd sizes: BiLSTM 9 over 7x5, BiLSTM 5 over 3x2, vector 6 to 4, head 32-10-3",
         lambda: Lstm(dict(fast=(5, 9), slow=(2, 5)), vector=6, projection=4, head=10),
         dict(fast=(5, 7, 5), slow=(5, 3, 2), vector=(5, 6)), batch=5, tail=1, seed=2,
         class_weight=(0.75, 1.5, 1.0), label_smoothing=0.1),
    Case("lstm_deep", "two layers of BiLSTM 7 over 9x6 with initial states; mean over time, linear 14-3",
         LstmDeep,
         dict(x=(4, 9, 6), h0=(4, 4, 7), c0=(4, 4, 7)), batch=4, tail=1, seed=3,
         input_grads=("h0", "c0")),
    Case("mlp", "linear and ReLU, 13-31-17-3",
         lambda: Mlp((13, 31, 17, 3), nn.ReLU),
         dict(x=(33, 13)), batch=33, tail=4, seed=4, gain=3.0),
    Case("mlp_gelu", "linear and GELU (erf), 13-31-17-3",
         lambda: Mlp((13, 31, 17, 3), nn.GELU),
         dict(x=(33, 13)), batch=33, tail=4, seed=5,
         class_weight=(0.75, 1.5, 1.0), label_smoothing=0.1),
    Case("transformer", "an encoder of 2 layers over 9x5, width 12, 3 heads, ff 20, ReLU; mean of steps; linear 12-3",
         lambda: Transformer(dict(fast=(9, 5, 12)), 3, 2, 20, "relu", False, "mean"),
         dict(fast=(7, 9, 5)), batch=7, tail=2, seed=6, class_weight=(0.75, 1.5, 1.0), jitter=0.1,
         settings=dict(heads="3", layers="2", activation="relu", causal="0", pooling="mean")),
    Case("transformer_causal", "the same, causal, with GELU; the last step; head 12-10-3",
         lambda: Transformer(dict(fast=(9, 5, 12)), 3, 2, 20, "gelu", True, "last", head=10),
         dict(fast=(7, 9, 5)), batch=7, tail=2, seed=7, jitter=0.1,
         settings=dict(heads="3", layers="2", activation="gelu", causal="1", pooling="last")),
    Case("transformer_two", "encoders over 11x5 of width 16 and 4x3 of width 8, 4 heads, vector 6 to 4, head 28-10-3",
         lambda: Transformer(dict(fast=(11, 5, 16), slow=(4, 3, 8)), 4, 1, 24, "gelu", False, "mean", vector=6,
                             projection=4, head=10),
         dict(fast=(5, 11, 5), slow=(5, 4, 3), vector=(5, 6)), batch=5, tail=1, seed=8,
         class_weight=(1.25, 0.5, 1.75), label_smoothing=0.1, jitter=0.1,
         settings=dict(heads="4", layers="1", activation="gelu", causal="0", pooling="mean")),
    Case("nbeats", "3 generic blocks of 4 layers of 16, 10 steps to 4; the absolute error",
         lambda: NBeats(("generic",), 3, 10, 4, 16, 4),
         dict(fast=(9, 10)), batch=9, tail=2, seed=9, objective="mae", horizon=4,
         settings=dict(stacks="generic", blocks="3", layers="4", horizon="4", degree="2")),
    Case("nbeats_basis", "2 blocks of trend and 2 of seasonality, 3 layers of 16, 13 steps to 7; Huber's loss",
         lambda: NBeats(("trend", "seasonality"), 2, 13, 7, 16, 3, degree=3),
         dict(fast=(9, 13)), batch=9, tail=2, seed=10, objective="huber", horizon=7,
         settings=dict(stacks="trend seasonality", blocks="2", layers="3", horizon="7", degree="3")),
    Case("nbeats_class", "2 generic blocks and one of trend, 2 layers of 16, 10 steps to 5; head 5-8-3",
         lambda: NBeats(("generic", "generic", "trend"), 1, 10, 5, 16, 2, degree=2, head=8, classes=3),
         dict(fast=(9, 10)), batch=9, tail=2, seed=11, class_weight=(0.75, 1.5, 1.0), label_smoothing=0.1,
         settings=dict(stacks="generic generic trend", blocks="1", layers="2", horizon="5", degree="2")),
)


@dataclasses.dataclass
class Batch:
    inputs: dict
    label: torch.Tensor
    weight: torch.Tensor
    class_weight: torch.Tensor
    target: torch.Tensor = None

    def double(self):
        return Batch({k: v.double() for k, v in self.inputs.items()}, self.label, self.weight.double(),
                     self.class_weight.double(), None if self.target is None else self.target.double())


def make_batch(case, classes):
    """Random inputs in every row, the tail included: only its weight may keep it out of the loss."""
    inputs = {name: torch.randn(shape) for name, shape in case.inputs.items()}
    label = torch.randperm(case.batch) % classes
    weight = torch.ones(case.batch)
    weight[1] = 0.5
    weight[case.batch - case.tail:] = 0.0
    target = torch.randn(case.batch, case.horizon) if case.horizon else None
    return Batch(inputs, label, weight, torch.tensor(case.class_weight or (1.0,) * classes), target)


def loss_of(case, output, batch):
    if case.objective != "cross_entropy":
        error = F.l1_loss(output, batch.target, reduction="none") if case.objective == "mae" else \
            F.huber_loss(output, batch.target, reduction="none", delta=0.5)
        return (error.sum(1) * batch.weight).sum() / (batch.weight.sum() * case.horizon)
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
        "objective": case.objective,
        "loss": "sum(weight * ce) / sum(weight * class_weight[label])" if case.objective == "cross_entropy" else
                "sum(weight * error) / (sum(weight) * horizon)",
        "optimizer": "adamw lr 1e-3 betas 0.9 0.999 eps 1e-8 weight_decay 0.01",
        "clip_norm": str(CLIP_NORM),
        "steps": str(STEPS),
    } | case.settings


def make(case, directory):
    torch.manual_seed(case.seed)
    model = case.make()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(case.gain)
            if case.jitter:
                p.add_(case.jitter * torch.randn(p.shape))
    batch = make_batch(case, classes=3)
    tensors = {"input." + k: v for k, v in batch.inputs.items()}
    tensors |= {"weight": batch.weight}
    tensors |= {"label": batch.label.int()} if batch.target is None else {"target": batch.target}
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
    save({k: v.numpy() for k, v in tensors.items()}, path, metadata_of(case))
    size = path.stat().st_size
    assert size < SIZE_LIMIT, f"{path}: {size} bytes, {SIZE_LIMIT} allowed"
    error = max(float((grads[k].double() - g).norm() / g.norm()) for k, g in grads64.items())
    print(f"{path.name}: {size} bytes, loss {losses[0]:.6f} to {losses[-1]:.6f}, gradient norm {norms.min():.3f} to "
          f"{norms.max():.3f}, largest relative error of a float32 gradient {error:.1e}")


if __name__ == "__main__":
    sys.exit(cases.run(CASES, make))
