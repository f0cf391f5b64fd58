#!/usr/bin/env python3
"""Makes the PyTorch dumps that test_ppo_golden compares with: CASE.safetensors for every case below.

usage: make_ppo.py OUTDIR [CASE...]   needs torch; runs on the CPU in a second

The loss is that of Stable-Baselines3's PPO.train on one minibatch, written out in plain torch, with its names of
parameters. Every file holds, in float32:
  observation, action, old_log_prob, advantage, target, old_value   the minibatch, advantages not yet normalised
  param.NAME         the parameters
  policy_loss, value_loss, entropy, approx_kl, clip_fraction, loss   scalars, computed in float64, then rounded
  grad.NAME          the gradient of loss, computed in float64, then rounded

Actions were drawn by an older policy, so that ratios lie on both sides of the clip's range, and inside. The metadata
hold the settings. The bounds are torch.clamp of the mean value loss and of the mean entropy.
"""
import copy
import dataclasses
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal

import cases
from tensors import save

SIZE_LIMIT = 50_000
BATCH, COLUMNS, HIDDEN = 24, 6, (16, 12)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    description: str
    policy: str                     # choices, numbers, or noise: numbers whose noise is a function of the last layer
    seed: int
    width: int                      # choices, or numbers of an action
    clip: float = 0.2
    value_clip: float = 0.0         # 0: none
    value: float = 0.5              # coefficients
    entropy: float = 0.01
    value_bound: float = 0.0        # 0: none
    entropy_bound: float = 0.0
    moved: float = 0.08             # deviation of what every parameter has changed by since the actions were taken


CASES = (
    Case("ppo_choices", "4 choices", "choices", seed=1, width=4),
    Case("ppo_numbers", "2 numbers with a deviation each, value clipping", "numbers", seed=2, width=2, value_clip=0.2,
         clip=0.1),
    Case("ppo_noise", "3 numbers with state-dependent noise", "noise", seed=6, width=3, entropy=0.05,
         moved=0.03),
    Case("ppo_bound_entropy", "3 choices, a bound that the entropy passes and the value loss does not", "choices",
         seed=4, width=3, entropy=0.1, entropy_bound=0.5, value_bound=50.0, moved=0.25),
    Case("ppo_bound_value", "2 numbers, a bound that the value loss passes and the entropy does not", "numbers",
         seed=5, width=2, entropy=0.1, entropy_bound=50.0, value_bound=0.5),
)


def net():
    widths = (COLUMNS, *HIDDEN)
    layers = [layer for i, o in zip(widths, widths[1:]) for layer in (nn.Linear(i, o), nn.Tanh())]
    return nn.Sequential(*layers)


class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy_net, self.value_net = net(), net()


class Policy(nn.Module):
    """Separate nets for policy and value, as ActorCriticPolicy has them."""

    def __init__(self, case):
        super().__init__()
        self.kind = case.policy
        self.mlp_extractor = Extractor()
        self.action_net = nn.Linear(HIDDEN[-1], case.width)
        self.value_net = nn.Linear(HIDDEN[-1], 1)
        if case.policy == "numbers":
            self.log_std = nn.Parameter(0.3 * torch.randn(case.width))
        if case.policy == "noise":
            self.log_std = nn.Parameter(0.3 * torch.randn(HIDDEN[-1], case.width) - 1)

    def distribution(self, x):
        latent = self.mlp_extractor.policy_net(x)
        mean = self.action_net(latent)
        if self.kind == "choices":
            return Categorical(logits=mean)
        if self.kind == "numbers":
            return Normal(mean, torch.ones_like(mean) * self.log_std.exp())
        variance = latent.detach() ** 2 @ self.log_std.exp() ** 2
        return Normal(mean, torch.sqrt(variance + 1e-6))

    def judge(self, x, action):
        """Log-probabilities of the actions, and the policy's entropies."""
        d = self.distribution(x)
        if self.kind == "choices":
            return d.log_prob(action.squeeze(1)), d.entropy()
        return d.log_prob(action).sum(1), d.entropy().sum(1)

    def values(self, x):
        return self.value_net(self.mlp_extractor.value_net(x)).flatten()


def make_batch(policy, moved):
    """A minibatch that an older policy has left, in float32."""
    old = copy.deepcopy(policy)
    with torch.no_grad():
        for p in old.parameters():
            p.add_(moved * torch.randn(p.shape))
        x = torch.randn(BATCH, COLUMNS)
        action = old.distribution(x).sample()
        action = action.unsqueeze(1).float() if policy.kind == "choices" else action
        old_value = old.values(x) + 0.3 * torch.randn(BATCH)
        return {"observation": x, "action": action, "old_log_prob": old.judge(x, action)[0],
                "advantage": 3 * torch.randn(BATCH) + 1, "target": old_value + torch.randn(BATCH),
                "old_value": old_value}


def bounded(mean, bound):
    return torch.clamp(mean, -bound, bound) if bound else mean


def losses(case, policy, b):
    """What PPO.train computes of one minibatch, by name."""
    values = policy.values(b["observation"])
    log_prob, entropy = policy.judge(b["observation"], b["action"])
    advantage = (b["advantage"] - b["advantage"].mean()) / (b["advantage"].std() + 1e-8)
    ratio = torch.exp(log_prob - b["old_log_prob"])
    free, cut = advantage * ratio, advantage * torch.clamp(ratio, 1 - case.clip, 1 + case.clip)
    policy_loss = -torch.min(free, cut).mean()
    if case.value_clip:
        values = b["old_value"] + torch.clamp(values - b["old_value"], -case.value_clip, case.value_clip)
    value_loss, entropy = F.mse_loss(b["target"], values), entropy.mean()
    loss = policy_loss + case.value * bounded(value_loss, case.value_bound) \
        - case.entropy * bounded(entropy, case.entropy_bound)
    log_ratio = log_prob - b["old_log_prob"]
    return {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy,
            "approx_kl": ((torch.exp(log_ratio) - 1) - log_ratio).mean(),
            "clip_fraction": (torch.abs(ratio - 1) > case.clip).double().mean(), "loss": loss}


def gradients(case, policy, batch):
    """What is told of the minibatch, and the gradients by name, in the policy's precision."""
    told = losses(case, policy, batch)
    grads = torch.autograd.grad(told["loss"], list(policy.parameters()))
    return {k: v.detach() for k, v in told.items()}, dict(zip(dict(policy.named_parameters()), grads))


def check(case, told, policy, batch):
    """A case must be what it says."""
    change = policy.values(batch["observation"]) - batch["old_value"]
    assert not case.value_clip or change.min() < -case.value_clip and change.max() > case.value_clip, \
        f"{case.name}: values change from {change.min():.2f} to {change.max():.2f}"
    assert 0.1 < told["clip_fraction"] < 0.9, f"{case.name}: {told['clip_fraction']:.2f} of the ratios are clipped"
    for what, bound in (("value_loss", case.value_bound), ("entropy", case.entropy_bound)):
        passed = case.name == "ppo_bound_" + what.split("_")[0]
        assert not bound or (abs(told[what]) > bound) == passed, f"{case.name}: {what} is {told[what]}"


def make(case, directory):
    torch.manual_seed(case.seed)
    policy = Policy(case)
    batch = make_batch(policy, case.moved)
    tensors = batch | {"param." + k: v.detach().clone() for k, v in policy.named_parameters()}
    rough = gradients(case, policy, batch)[1]
    policy.double()
    batch = {k: v.double() for k, v in batch.items()}
    told, grads = gradients(case, policy, batch)
    check(case, told, policy, batch)
    error = max(float((rough[k] - g).abs().max() / (g.abs().max() + 1e-30)) for k, g in grads.items())
    assert error < 3e-6, f"{case.name}: terms cancel, float32 gives a gradient to {error:.1e} of its largest element"
    tensors |= {"grad." + k: g for k, g in grads.items()}
    tensors |= told
    metadata = {k: str(v) for k, v in dataclasses.asdict(case).items()} | {"torch": str(torch.__version__)}
    path = directory / (case.name + ".safetensors")
    save({k: v.detach().float().numpy() for k, v in tensors.items()}, path, metadata)
    size = path.stat().st_size
    assert size < SIZE_LIMIT, f"{path}: {size} bytes, {SIZE_LIMIT} allowed"
    print(f"{path.name}: {size} bytes, float32 errs by {error:.1e}, " +
          ", ".join(f"{k} {float(v):.5f}" for k, v in told.items()))


if __name__ == "__main__":
    sys.exit(cases.run(CASES, make))
