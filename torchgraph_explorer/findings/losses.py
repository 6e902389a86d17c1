"""Which of the logged scalars is the training loss, and whether it can be expected to fall."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.schema import titled

HELD_OUT = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev", "holdout", "ood"})
"""Words in a scalar's name that say it was measured on other data than that of the training."""

WHOLE = frozenset(
    {
        *("train", "training", "trainer", "fit", "model", "objective", "criterion"),
        *("total", "overall", "all", "full", "sum", "mean", "avg", "average", "running", "smooth", "smoothed", "raw"),
        *("step", "iter", "iteration", "batch", "epoch", "per"),
        *("ce", "xent", "cross", "entropy", "mse", "nll", "bce"),
    }
)
"""Words beside `loss` in the name of a whole loss, as opposed to one of several parts."""

SYNONYMS = frozenset(
    {
        *("mse", "mae", "rmse", "huber", "bce", "ce", "nll", "xent", "crossentropy", "hinge", "triplet", "infonce"),
        *("cost", "recon", "reconstruction"),
    }
)
"""Words that a loss is called by instead of `loss`."""

MOVING = frozenset(
    {
        *("reward", "rewards", "return", "returns", "episode", "episodes", "epsilon", "advantage", "policy", "td"),
        *("actor", "critic", "ppo", "dqn", "qvalue"),
        *("discriminator", "generator", "disc", "gen", "adversarial", "gan", "fake", "real"),
    }
)
"""Words in the names of scalars of reinforcement learning and of adversaries, whose losses need not fall."""

OVERLAPS = frozenset({"dice", "iou", "jaccard", "tversky"})
"""Words in the names of ratios of the overlap of two sets to their sizes, which are between 0 and 1."""

BESIDE_OVERLAPS = frozenset({"loss", "coef", "coefficient", "score", "soft"})
"""Words that may stand beside them."""

REWARDED = frozenset({"actor", "critic", "policy", "ppo", "dqn", "sac"})
"""Words in the names of networks that learn by rewards, and of their outermost parts."""

RETURNS = frozenset({"reward", "rewards", "return", "returns", "episode", "advantage"})
"""Words in the names of what such networks learn by."""

VALUES = frozenset({"v", "vf", "value", "values"})
"""Words in the name of a head that gives the value of a state, where it stands beside one that is called `pi`."""

CRITICS = frozenset({"critic", "baseline"})
"""Words in the names of what gives values."""

DIVERGENCES = frozenset({"kl", "kld", "kldiv", "divergence"})
"""Words in the names of divergences, which are never below zero."""

DISTILLATIONS = frozenset({"kd", "distil", "distill", "distillation"})
"""Words in the names of what tells a network from its teacher, which is mostly a divergence."""

ESTIMATES = frozenset({"approx", "approximate", "estimate", "est", "ref", "penalty", "weighted", "target", "coef"})
"""Words in the names of what may be below zero: estimates from samples, and multiples of them."""

OUTERMOST = 2
"""How many names deep parts of a model stand that tell what it is for."""

LEAST_KNOWN = 2
"""At how many steps, at least, it has to be known which outputs get gradients."""

BOTH_WAYS = 0.02
"""The share of the gradients that draw up has to be at least this, and so has the share of those that draw down."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def the_loss(scalars: Mapping[str, Scalar]) -> Scalar | None:
    """The loss of the whole training; None if there is none, or only several parts of one.

    A scalar is a loss if `loss` is a word of its name, and no word of `HELD_OUT` is. Of several, those whose other
    words are all in `WHOLE` come first, then the one with the fewest words, then the one with the most values. If no
    name has that word, it is the only scalar with the name of a loss function.
    """
    losses = {name: words for name in scalars if "loss" in (words := _words(name)) and not words & HELD_OUT}
    whole = [name for name, words in losses.items() if words - {"loss"} <= WHOLE]
    if not losses:
        called = [name for name in scalars if SYNONYMS & (words := _words(name)) and words <= SYNONYMS | WHOLE]
        return scalars[called[0]] if len(called) == 1 else None
    if not whole:
        return scalars[next(iter(losses))] if len(losses) == 1 else None
    return scalars[min(whole, key=lambda name: (len(losses[name]), -len(scalars[name])))]


def divergences(scalars: Mapping[str, Scalar]) -> list[Scalar]:
    """The scalars that are divergences by their names, such as `kl` and `loss/kld`, and no estimates of them."""
    found = ((scalar, _words(name)) for name, scalar in scalars.items())
    return [scalar for scalar, words in found if words & DIVERGENCES and not words & ESTIMATES]


def losses_of_values(scalars: Mapping[str, Scalar]) -> list[Scalar]:
    """The scalars that are the loss of a critic by their names, such as `value_loss`."""
    found = ((scalar, _words(name)) for name, scalar in scalars.items())
    losses = [(scalar, words) for scalar, words in found if "loss" in words and not words & HELD_OUT]
    return [scalar for scalar, words in losses if words & (VALUES | CRITICS)]


def distillations(scalars: Mapping[str, Scalar]) -> list[Scalar]:
    """The scalars that are called after a distillation, and are no estimates."""
    found = ((scalar, _words(name)) for name, scalar in scalars.items())
    return [
        scalar
        for scalar, words in found
        if words & DISTILLATIONS and not words & (ESTIMATES | DIVERGENCES | HELD_OUT | {"cos", "cosine"})
    ]


def ratios_of_overlap(scalars: Mapping[str, Scalar]) -> list[Scalar]:
    """The scalars that are called after a ratio of overlap, and after nothing that may have other values."""
    found = ((scalar, _words(name)) for name, scalar in scalars.items())
    return [scalar for scalar, words in found if words & OVERLAPS and words <= OVERLAPS | BESIDE_OVERLAPS | WHOLE]


def need_not_fall(evidence: Evidence) -> bool:
    """Whether the target moves while the network learns: adversaries, reinforcement learning, optimizers in turns."""
    labelled = (titled(one.name, one.label) for one in evidence.model.logged.every)
    names = [_words(name) for name in (*evidence.scalars, *labelled)]
    named = any(words & MOVING or ({"d", "g"} & words and "loss" in words) for words in names)
    in_turns = {one.optimizers for one in evidence.facts if one is not None and one.optimizers}
    return named or len(in_turns) > 1 or _are_values_of_choices(evidence)


def tell_of_rewards(scalars: Mapping[str, Scalar]) -> bool:
    """Whether scalars have names of rewards or of a policy."""
    return any(words & (REWARDED | RETURNS) for words in map(_words, scalars))


def is_rewarded(evidence: Evidence) -> bool:
    """Whether the model learns by rewards, as the names of its outermost parts and their classes say.

    The loss of a policy and its critic is that of ever new episodes, and says little of what was learned.
    """
    modules = [one for name, one in evidence.places.modules.items() if name.count(".") < OUTERMOST]
    words = {word for one in modules for name in (one.name.rpartition(".")[2], one.class_name) for word in _words(name)}
    return bool(words & REWARDED) or ("pi" in words and bool(words & VALUES))


def _are_values_of_choices(evidence: Evidence) -> bool:
    """Whether one of several outputs of each sample gets a gradient, in both directions: the values of chosen actions.

    The targets of such values rise with the values themselves. The logarithms of the probabilities of labels also have
    one gradient a sample, but all of these have the same sign.
    """
    several = any(
        len(one.shape) == 2 and (one.shape[1] or 0) > 1
        for call in evidence.places.calls
        if not call.module and not call.call
        for one in call.outputs
    )
    known = [one.numbers for one in evidence.training if one is not None and one.numbers is not None]
    chosen = [one.rising for one in known if one.outputs == 1]
    if not several or len(known) < LEAST_KNOWN or len(chosen) <= len(known) / 2:
        return False
    return BOTH_WAYS < sum(chosen) / len(chosen) < 1 - BOTH_WAYS


def _words(name: str) -> set[str]:
    return {part for word in _WORDS.findall(name) for part in _parts(word.lower())}


def _parts(word: str) -> Iterator[str]:
    """The words of a name, where `trainloss` counts as two words."""
    if word.endswith("loss") and word != "loss":
        yield word.removesuffix("loss")
        word = "loss"
    yield "loss" if word == "losses" else word
