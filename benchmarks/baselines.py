"""What SageMaker Debugger and TheDeepChecker say at their default thresholds, from what plain hooks see in a training.

These are small functions of ours after their published rules, not the tools themselves, which are tied to services
and frameworks of their own. Where a rule has several conditions, all that can be seen from hooks are here.

Source: the built-in rules of SageMaker Debugger (`smdebug.rules`, AWS developer guide), and Ben Braiek and Khomh,
"Testing Feedforward Neural Networks Training Programs" (TheDeepChecker, 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor, nn

from benchmarks.programs.program import Losses, Setup
from torchgraph_explorer.finding import Finding

CHECK_EVERY = 10
"""Steps between the checks of TheDeepChecker."""

CHECKS = 5
"""Checks over which it wants growth or decay."""

RELUS = (nn.ReLU, nn.ReLU6)
SQUASHES = {nn.Tanh: (-9.4999, 9.4999), nn.Sigmoid: (-23.0, 16.99999)}
"""SageMaker's bounds of the input, beyond which a node is saturated."""


@dataclass(slots=True)
class Seen:
    """What hooks see at one step, by the name of the module.

    Attributes:
        step: Its number.
        loss: The sum of what was logged as losses.
        gradients: Mean magnitudes, by parameter.
        spread: 95th minus 5th percentile of the gradient, by parameter.
        ratios: Mean magnitude of the update over that of the values, by parameter.
        weights: Mean magnitudes, by parameter.
        variances: Variances of the weights, by parameter.
        unchanged: Parameters that are close to those before the step.
        dead: Share of units of a ReLU that are active for less than 1 % of the samples.
        low: Share of units of a ReLU whose 95th percentile is below 1e-5.
        saturated: Share of the inputs beyond the bounds of `SQUASHES`.
        busy: Share of units whose mean normalised activity is above 0.85.
        stds: Standard deviations of outputs of activations.
        bad: Modules with an output or gradient that is not finite.
        zeros: Parameters whose values or gradients are all zero.
        mean: Mean of what went into the first module.
    """

    step: int
    loss: float = math.nan
    gradients: dict[str, float] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    variances: dict[str, float] = field(default_factory=dict)
    unchanged: set[str] = field(default_factory=set)
    dead: dict[str, float] = field(default_factory=dict)
    low: dict[str, float] = field(default_factory=dict)
    saturated: dict[str, float] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)
    stds: dict[str, float] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)
    zeros: set[str] = field(default_factory=set)
    mean: float | None = None


class Plain:
    """Plain hooks on a model, which note at each step what the baselines look at."""

    def __init__(self, setup: Setup) -> None:
        self.model = setup.model
        self.seen: list[Seen] = []
        self._before: dict[str, Tensor] = {}
        self._now = Seen(0)
        for name, module in self.model.named_modules():
            if not any(True for _ in module.children()) or not name:
                module.register_forward_hook(self._hook(name))

    def _hook(self, name: str) -> Callable[[nn.Module, tuple[object, ...], object], None]:
        def hook(module: nn.Module, inputs: tuple[object, ...], output: object) -> None:
            with torch.no_grad():
                _look(self._now, name, module, taken=inputs[0] if inputs else None, output=output)

        return hook

    def before_step(self) -> None:
        """Keep the parameters as they are."""
        self._now = Seen(len(self.seen))
        self._before = {name: one.detach().clone() for name, one in self.model.named_parameters()}

    @torch.no_grad()
    def after_step(self, losses: Losses) -> None:
        """Note the losses, gradients and updates."""
        now = self._now
        parts = losses.values() if isinstance(losses, dict) else [losses]
        now.loss = sum(float(one) for one in parts)
        for name, one in self.model.named_parameters():
            value, old = one.detach().float(), self._before[name].float()
            now.weights[name] = float(value.abs().mean())
            now.variances[name] = float(value.var()) if value.numel() > 1 else 0.0
            if not float(value.abs().max()):
                now.zeros.add(name)
            if torch.allclose(value, old, rtol=1e-5, atol=1e-8):
                now.unchanged.add(name)
            now.ratios[name] = float((value - old).abs().mean()) / (now.weights[name] + 1e-9)
            if one.grad is not None:
                _look_at_gradient(now, name, one.grad.float())
        self.seen.append(now)


def _look(now: Seen, name: str, module: nn.Module, *, taken: object, output: object) -> None:
    first = taken
    if now.mean is None and isinstance(first, Tensor):
        now.mean = float(first.float().mean())
    if not isinstance(output, Tensor) or not output.is_floating_point() or output.dim() < 2:
        return
    if not bool(torch.isfinite(output).all()):
        now.bad.add(name)
    units = output.float().flatten(1)
    if isinstance(module, RELUS):
        now.dead[name] = float(((units > 0).float().mean(0) < 0.01).float().mean())
        now.stds[name] = float(units.std())
        if not now.step % CHECK_EVERY:
            now.low[name] = float((torch.quantile(units, 0.95, dim=0) < 1e-5).float().mean())
    for squash, (low, high) in SQUASHES.items():
        if isinstance(module, squash) and isinstance(first, Tensor):
            now.saturated[name] = float(((first < low) | (first > high)).float().mean())
            activity = units.abs() if squash is nn.Tanh else (2 * units - 1).abs()
            now.busy[name] = float((activity.mean(0) > 0.85).float().mean())
            now.stds[name] = float(units.std())


def _look_at_gradient(now: Seen, name: str, grad: Tensor) -> None:
    now.gradients[name] = float(grad.abs().mean())
    if not bool(torch.isfinite(grad).all()):
        now.bad.add(name.rpartition(".")[0])
    elif now.step < CHECK_EVERY:
        flat = grad.flatten()[:4096]
        now.spread[name] = float(torch.quantile(flat, 0.95) - torch.quantile(flat, 0.05))


def sagemaker(seen: list[Seen]) -> tuple[Finding, ...]:
    """What SageMaker Debugger's rules say, each at the first step and place at which it fires."""
    return _firsts(one for now in seen for one in (*_sagemaker_tensors(now), *_sagemaker_history(seen, now)))


def _sagemaker_tensors(now: Seen) -> Iterator[Finding]:
    yield from (_fired("nan", name, now) for name in sorted(now.bad))
    yield from (_fired("vanishing-gradient", _owner(name), now) for name, mean in now.gradients.items() if mean < 1e-7)
    yield from (_fired("zero-init", _owner(name), now) for name in sorted(now.zeros))
    yield from (_fired("dead-units", name, now) for name, share in now.dead.items() if share > 0.5)
    yield from (_fired("saturated-activation", name, now) for name, share in now.saturated.items() if share > 0.5)
    yield from (_fired("update-too-large", None, now) for ratio in now.ratios.values() if ratio > 10)
    yield from (_fired("update-too-small", None, now) for ratio in now.ratios.values() if ratio < 1e-8)
    if abs(now.mean or 0) > 0.2:
        yield _fired("input-not-normalised", "", now)


def _sagemaker_history(seen: list[Seen], now: Seen) -> Iterator[Finding]:
    """LossNotDecreasing, UnchangedTensor over 3 steps, and PoorWeightInitialization in the first 10."""
    at = now.step
    if at >= 10 and not now.loss < seen[at - 10].loss * (1 - 1e-3):
        yield _fired("loss-not-falling", None, now)
    if at >= 2:
        same = now.unchanged & seen[at - 1].unchanged & seen[at - 2].unchanged
        for name in sorted(same):
            for kind in ("not-in-optimizer", "no-gradient", "unused-module", "frozen-by-accident"):
                yield _fired(kind, _owner(name), now)
    if at < 10:
        variances = [one for name, one in now.variances.items() if one > 0 and name.endswith("weight")]
        spread = [one for one in now.spread.values() if one < 1e-3]
        if (variances and max(variances) > 10 * min(variances)) or spread:
            yield _fired("bad-init-scale", None, now)


def deepchecker(seen: list[Seen]) -> tuple[Finding, ...]:
    """What TheDeepChecker's checks say, each at the first step and place at which it fires."""
    checks = seen[::CHECK_EVERY]
    return _firsts(
        one
        for number, now in enumerate(checks)
        for one in (*_deepchecker_now(now), *_deepchecker_history(checks, number), *_deepchecker_loss(seen, now))
    )


def _deepchecker_now(now: Seen) -> Iterator[Finding]:
    yield from (_fired("nan", name, now) for name in sorted(now.bad))
    yield from (_fired("vanishing-gradient", _owner(name), now) for name, mean in now.gradients.items() if mean < 1e-6)
    yield from (_fired("exploding-gradient", None, now) for mean in now.gradients.values() if mean > 1e6)
    yield from (_fired("dead-units", name, now) for name, share in now.low.items() if share > 0.5)
    yield from (_fired("saturated-activation", name, now) for name, share in now.busy.items() if share > 0.5)
    yield from (_fired("bad-init-scale", name, now) for name, std in now.stds.items() if not 0.5 <= std <= 2)
    yield from (_fired("zero-init", _owner(name), now) for name, mean in now.weights.items() if mean < 1e-5)
    for ratio in now.ratios.values():
        if ratio > 0.1:
            yield _fired("update-too-large", None, now)
        elif ratio < 1e-4:
            yield _fired("update-too-small", None, now)


def _deepchecker_history(checks: list[Seen], number: int) -> Iterator[Finding]:
    """Growth and decay by a factor of 2 at each of 5 checks."""
    now = checks[number]
    past = checks[max(number - CHECKS, 0) : number + 1]
    if len(past) <= CHECKS:
        return
    for name in now.gradients:
        means = [one.gradients.get(name, math.nan) for one in past]
        if all(after >= 2 * before for before, after in pairwise(means)):
            yield _fired("exploding-gradient", None, now)
        if all(after <= 0.5 * before for before, after in pairwise(means)):
            yield _fired("vanishing-gradient", _owner(name), now)
    losses = [one.loss for one in past]
    if all(after > 0.95 * before for before, after in pairwise(losses)):
        yield _fired("loss-not-falling", None, now)


def _deepchecker_loss(seen: list[Seen], now: Seen) -> Iterator[Finding]:
    """Twice the least so far, or up and down at more than half of 50 steps."""
    losses = [one.loss for one in seen[: now.step + 1]]
    if losses and now.loss >= 2 * min(losses) > 0:
        yield _fired("loss-diverging", None, now)
    recent = losses[-51:]
    changes = [after - before for before, after in pairwise(recent)]
    turns = sum(one * other < 0 for one, other in pairwise(changes))
    if len(changes) >= 50 and turns > 0.5 * len(changes):
        yield _fired("loss-fluctuating", None, now)


def _owner(parameter: str) -> str:
    return parameter.rpartition(".")[0]


def _fired(kind: str, module: str | None, now: Seen) -> Finding:
    return Finding(kind=kind, severity="warning", module=module, step=now.step, last_step=now.step, text=kind)


def _firsts(found: Iterator[Finding]) -> tuple[Finding, ...]:
    firsts: dict[tuple[str, str | None], Finding] = {}
    for one in found:
        firsts.setdefault((one.kind, one.module), one)
    return tuple(firsts.values())
