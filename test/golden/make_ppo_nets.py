#!/usr/bin/env python3
"""Makes the PyTorch dumps that test_ppo_nets compares with: one minibatch of an agent's learner, for nets that see
sequences: an LSTM over rollouts, and a transformer over lags.

usage: make_ppo_nets.py OUTDIR [CASE...]   needs torch; runs on the CPU in seconds

Nets and their parameters are named as an agent's are: policy.lstm.weight_ih_l0, policy.net.0.weight, log_std. A rollout
has STEPS steps of ENVS environments, and its tables have a row for each step of each environment, step by step. The
minibatch is the whole rollout. Every file holds, in float32:
  state.NAME   tables of the rollout, the LSTMs' first states and the knobs, by the names that the learner has for them
  param.NAME   the parameters
  grad.NAME    the gradient of the loss, computed in float64, then rounded
  loss         computed in float64, then rounded

An LSTM is stepped through time one step after the other, and where an episode begins its states are cleared first.
The loss is that of make_ppo.py.
"""
import copy
import dataclasses
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal

import cases
from models import Stream, make_head, make_projection
from tensors import save

SIZE_LIMIT = 60_000
ENVS, STEPS, UNITS, WIDTHS = 5, 9, 6, (8,)
LAGS, LAGGED, ONCE, OWN = 5, 3, 2, 5
TRANSFORMER = {"heads": 2, "layers": 1, "ff": 12, "width": 8, "projection": 4, "head": 8}
CLIP, VALUE, ENTROPY = 0.2, 0.5, 0.02


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    net: str        # lstm or transformer
    env: str        # cartpole: choices, pendulum: numbers; market: either
    choices: bool
    columns: int    # of an observation
    width: int      # choices, or numbers of an action
    seed: int
    shared: bool = False
    noise: bool = False     # depends on the state
    moved: float = 0.2


CASES = (
    Case("ppo_lstm_choices", "lstm", "cartpole", True, 4, 2, seed=1, moved=0.4),
    Case("ppo_lstm_numbers", "lstm", "pendulum", False, 3, 1, seed=2, noise=True, moved=0.2),
    Case("ppo_lstm_shared", "lstm", "cartpole", True, 4, 2, seed=37, shared=True, moved=0.5),
    Case("ppo_transformer_choices", "transformer", "market", True, LAGS * LAGGED + ONCE + OWN, 3, seed=4),
    Case("ppo_transformer_numbers", "transformer", "market", False, LAGS * LAGGED + ONCE + OWN, 2, seed=5),
)


class Recurrent(nn.Module):
    """An LSTM and a net behind it, over sequences [N, T, columns] with their first states and beginnings [N, T]."""

    def __init__(self, columns, outputs):
        super().__init__()
        self.lstm = nn.LSTM(columns, UNITS, batch_first=True)
        sizes = (UNITS, *WIDTHS)
        layers = [layer for i, o in zip(sizes, sizes[1:]) for layer in (nn.Linear(i, o), nn.Tanh())]
        self.net = nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))

    def latent(self, b, which):
        x, begins = b["seen"], b["begins"]
        h, c = b[which + ".h"].unsqueeze(0), b[which + ".c"].unsqueeze(0)
        steps = []
        for t in range(x.shape[1]):
            keeps = (begins[:, t] == 0).to(x.dtype).view(1, -1, 1)
            y, (h, c) = self.lstm(x[:, t:t + 1], (h * keeps, c * keeps))
            steps.append(y)
        return self.net[:-1](torch.cat(steps, 1).flatten(0, 1))

    def last(self, latent):
        return self.net[-1](latent)


class OverLags(nn.Module):
    """A transformer over the lags of an observation; all other columns join behind the pooling."""

    def __init__(self, columns, outputs):
        super().__init__()
        t = TRANSFORMER
        self.bars = Stream(LAGS, LAGGED, t["width"], t["heads"], t["layers"], t["ff"], "relu", False, "mean")
        self.strat = make_projection(columns - LAGS * LAGGED, t["projection"])
        self.head = make_head(t["width"] + t["projection"], t["head"], outputs)

    def latent(self, b, which):
        x = b["seen"].flatten(0, 1)
        bars, rest = x[:, :LAGS * LAGGED], x[:, LAGS * LAGGED:]
        y = torch.cat([self.bars(bars.reshape(-1, LAGS, LAGGED)), self.strat(rest)], 1)
        return self.head[:-1](y)

    def last(self, latent):
        return self.head[-1](latent)


class Shared(Recurrent):
    """With the value as a head of its own."""

    def __init__(self, columns, outputs, width):
        super().__init__(columns, outputs)
        self.value = nn.Linear(width, 1)


class Agent(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.case = case
        make = Recurrent if case.net == "lstm" else OverLags
        width = WIDTHS[-1] if case.net == "lstm" else TRANSFORMER["head"]
        if case.shared:
            self.shared = Shared(case.columns, case.width, width)
        else:
            self.policy, self.value = make(case.columns, case.width), make(case.columns, 1)
        if not case.choices:
            self.log_std = nn.Parameter(0.2 * torch.randn(*((width,) if case.noise else ()), case.width) - 0.5)
        with torch.no_grad():
            for p in self.parameters():     # biases and norms of their own
                p.add_(0.05 * torch.randn(p.shape))

    def distribution(self, b):
        latent = self.shared.latent(b, "shared") if self.case.shared else self.policy.latent(b, "policy")
        mean = (self.shared if self.case.shared else self.policy).last(latent)
        if self.case.choices:
            return Categorical(logits=mean)
        if self.case.noise:
            return Normal(mean, torch.sqrt(latent.detach() ** 2 @ self.log_std.exp() ** 2 + 1e-6))
        return Normal(mean, torch.ones_like(mean) * self.log_std.exp())

    def judge(self, b, action):
        d = self.distribution(b)
        if self.case.choices:
            return d.log_prob(action.squeeze(1)), d.entropy()
        return d.log_prob(action).sum(1), d.entropy().sum(1)

    def values(self, b):
        if self.case.shared:
            return self.shared.value(self.shared.latent(b, "shared")).flatten()
        return self.value.last(self.value.latent(b, "value")).flatten()


def memories(case):
    return () if case.net != "lstm" else ("shared",) if case.shared else ("policy", "value")


def make_batch(case, agent):
    """A rollout that an older agent has left: sequences [N, T, ...], and per row n * T + t."""
    old = copy.deepcopy(agent)
    b = {"seen": torch.randn(ENVS, STEPS, case.columns), "begins": (torch.rand(ENVS, STEPS) < 0.25).float()}
    for which in memories(case):
        b |= {which + ".h": 0.5 * torch.randn(ENVS, UNITS), which + ".c": 0.5 * torch.randn(ENVS, UNITS)}
    with torch.no_grad():
        for p in old.parameters():
            p.add_(case.moved * torch.randn(p.shape))
        action = old.distribution(b).sample()
        action = action.unsqueeze(1).float() if case.choices else action
        value = old.values(b) + 0.3 * torch.randn(ENVS * STEPS)
        return b | {"action": action, "log_prob": old.judge(b, action)[0], "value": value,
                    "advantage": 3 * torch.randn(ENVS * STEPS) + 1, "target": value + torch.randn(ENVS * STEPS)}


def loss(agent, b):
    log_prob, entropy = agent.judge(b, b["action"])
    advantage = (b["advantage"] - b["advantage"].mean()) / (b["advantage"].std() + 1e-8)
    ratio = torch.exp(log_prob - b["log_prob"])
    policy = -torch.min(advantage * ratio, advantage * torch.clamp(ratio, 1 - CLIP, 1 + CLIP)).mean()
    clipped = float((torch.abs(ratio - 1) > CLIP).double().mean())
    return policy + VALUE * F.mse_loss(b["target"], agent.values(b)) - ENTROPY * entropy.mean(), clipped


def by_step(x):
    """[N, T, ...] or [N * T, ...] to rows t * N + n."""
    x = x.reshape(ENVS, STEPS, *x.shape[(1 if x.shape[0] == ENVS * STEPS else 2):])
    return x.transpose(0, 1).flatten(0, 1).contiguous()


def states(case, b):
    of = {"rollout " + k: by_step(b[k]) for k in ("seen", "action", "log_prob", "value", "advantage", "target")}
    if case.net == "lstm":
        of["rollout begins"] = by_step(b["begins"])
    for which in memories(case):
        of |= {f"rollout first {which}.{k}": b[f"{which}.{k}"] for k in "hc"}
    return of


def make(case, directory):
    torch.manual_seed(case.seed)
    agent = Agent(case)
    b = make_batch(case, agent)
    tensors = {"param." + k: v.detach().clone() for k, v in agent.named_parameters()}
    tensors |= {"state." + k: v for k, v in states(case, b).items()}
    agent.double()
    total, clipped = loss(agent, {k: v.double() for k, v in b.items()})
    assert 0.1 < clipped < 0.9, f"{case.name}: {clipped:.2f} of the ratios are clipped"
    names = dict(agent.named_parameters())
    tensors |= {"grad." + k: g for k, g in zip(names, torch.autograd.grad(total, list(names.values())))}
    tensors["loss"] = total
    about = dataclasses.asdict(case) | TRANSFORMER | {
        "envs": ENVS, "steps": STEPS, "units": UNITS, "widths": "-".join(map(str, WIDTHS)), "lags": LAGS,
        "lagged": LAGGED, "once": ONCE, "clip": CLIP, "value": VALUE, "entropy": ENTROPY, "torch": torch.__version__}
    path = directory / (case.name + ".safetensors")
    save({k: v.detach().float().numpy() for k, v in tensors.items()}, path, {k: str(v) for k, v in about.items()})
    size = path.stat().st_size
    assert size < SIZE_LIMIT, f"{path}: {size} bytes, {SIZE_LIMIT} allowed"
    print(f"{path.name}: {size} bytes, loss {float(total):.5f}, {clipped:.2f} of the ratios are clipped")


if __name__ == "__main__":
    sys.exit(cases.run(CASES, make))
