"""Ratios of experiments: how often intervals cover, and their widths beside the delta method's.

Users are drawn anew each time: sessions from 1 to 50, most with one, and conversions at a rate of
their own. Noise is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from shoal.privacy.noise import Simulated
from shoal.trials import Domain, Experiment
from shoal.trials.questions.ratios import RatiosPlan
from shoal_studies.populations import Floats
from shoal_studies.registry import Repetitions, bench

_SEED = 11
_CONFIDENCE = 0.95
_NORMAL = 1.959964
_LEVELS = np.arange(1, 51)
_ZIPF = _LEVELS**-2.2 / (_LEVELS**-2.2).sum()
_EVEN = np.full(50, 0.02)
_WIDE = ("counts:0:10", "counts:1:50")
_NARROW = ("counts:0:5", "counts:1:20")
# The rates of conversions of the treated and of control, and users by which truths are computed.
_RATES = (0.13, 0.10)
_MANY = 2_000_000
# Where there are clusters or subgroups, rates are these times as high.
_FACTORS = (0.7, 1.0, 1.6)


class Design(NamedTuple):
    """Users of both arms, the loss, how many sessions they have, and ranges of both sums."""

    treated: int
    control: int
    epsilon: float
    law: Floats = _ZIPF
    domains: tuple[str, str] = _WIDE
    split: str = ""


DESIGNS = {
    "two arms of 20": Design(20, 20, 1),
    "two arms of 100": Design(100, 100, 1),
    "two arms of 1,000": Design(1000, 1000, 1),
    "1% arm of 40,000": Design(400, 39_600, 1),
    "10% arm of 10,000, 0.5": Design(1000, 9000, 0.5),
    "two arms of 2,000": Design(2000, 2000, 1),
    "sessions even, 1,000": Design(1000, 1000, 1, _EVEN),
    "sessions even, 100, 4": Design(100, 100, 4, _EVEN),
    "two arms of 300, 8": Design(300, 300, 8),
    "two arms of 20,000, 0.1": Design(20_000, 20_000, 0.1),
    "three clusters, 2,000": Design(2000, 2000, 1, split="cluster"),
    "three subgroups, 6,000": Design(6000, 6000, 1, split="by"),
    "narrow, 5,000": Design(5000, 5000, 1, domains=_NARROW),
    "10,000": Design(10_000, 10_000, 1),
}


@bench("ratios")
def ratios(repetitions: Repetitions = 200) -> Iterator[str]:
    """Ratios of sums of users: coverage of intervals, and widths over those without privacy.

    Example: shoal bench ratios --repetitions 200
    """
    yield f"95% intervals in {repetitions:,} releases; width over the delta method's, median"
    yield f"{'design':26}{'epsilon':>8}{'effect':>9}{'one arm':>9}{'delta':>8}{'times':>8}"
    for name, design in DESIGNS.items():
        effect, arm, delta, times = _covered(design, repetitions)
        shares = f"{effect:9.1%}{arm:9.1%}{delta:8.1%}"
        yield f"{name:26}{design.epsilon:8g}{shares}{times:8.2f}"


def _users(rng: Any, n: int, rate: float, design: Design) -> tuple[Floats, Floats, Any]:
    """Conversions and sessions within their ranges, and the part that each user is in."""
    first, second = (Domain.counts(*map(int, each.split(":")[1:])) for each in design.domains)
    part = rng.integers(0, len(_FACTORS), n)
    sessions = rng.choice(_LEVELS, size=n, p=design.law)
    own = rng.beta(8 * rate, 8 * (1 - rate), size=n)
    if design.split:
        own = np.minimum(own * np.array(_FACTORS)[part], 1)
    bought = rng.binomial(sessions, own).astype(float)
    return (
        np.minimum(bought, first.levels[-1]),
        np.minimum(sessions, second.levels[-1]).astype(float),
        part,
    )


def _covered(design: Design, repetitions: int) -> tuple[float, float, float, float]:
    """How often intervals of the effect, of an arm and of the delta method cover; their width."""
    rng = np.random.default_rng(_SEED)
    sizes = design.treated, design.control
    # Of both arms the means of numerators and denominators in each part.
    truth = np.array([_means(*_users(rng, _MANY, rate, design)) for rate in _RATES])
    arm = np.repeat([1, 0], sizes)
    found = np.zeros((repetitions, 4))
    for turn in range(repetitions):
        drawn = [_users(rng, n, rate, design) for n, rate in zip(sizes, _RATES, strict=True)]
        x, y, part = (np.concatenate(each) for each in zip(*drawn, strict=True))
        plan, study = _planned(design, arm, part)
        both = x[study.rows], y[study.rows]
        answers = plan.read(plan.respond(both, Simulated(turn)), _CONFIDENCE)
        shares = np.bincount(part, minlength=len(_FACTORS)) / len(part)
        weights = [shares] if design.split == "cluster" else [np.full(len(_FACTORS), 1 / 3)]
        names = ["effect"]
        if design.split == "by":
            weights = list(np.eye(len(_FACTORS)))
            names = [f"effect where part is {at}" for at in range(len(_FACTORS))]
        for name, weight in zip(names, weights, strict=True):
            low, high = answers[name].interval
            treated, control = (weight @ means[:, 0] / (weight @ means[:, 1]) for means in truth)
            inside = weight[part] > 0
            plain = [_delta(x, y, inside & (arm == each)) for each in (1, 0)]
            half = _NORMAL * np.sqrt(sum(variance for _, variance in plain))
            effect = treated - control
            seen = abs(plain[0][0] - plain[1][0] - effect) <= half
            times = (high - low) / (2 * half)
            found[turn, [0, 2, 3]] += np.array([low <= effect <= high, seen, times]) / len(names)
        low, high = answers["ratio of arm 0"].interval
        whole = truth[1].mean(axis=0)
        found[turn, 1] = low <= whole[0] / whole[1] <= high
    effect, of_arm, delta, _ = found.mean(axis=0).tolist()
    return effect, of_arm, delta, float(np.median(found[:, 3]))


def _means(x: Floats, y: Floats, part: Any) -> Floats:
    """Means of both in each part, shape (parts, 2)."""
    sizes = np.bincount(part)
    return np.stack([np.bincount(part, each) / sizes for each in (x, y)], axis=1)


def _planned(design: Design, arm: Any, part: Any) -> tuple[RatiosPlan, Experiment]:
    """A plan of the effect and the ratios of arms, in clusters or in subgroups if there are any."""
    cluster = part if design.split == "cluster" else None
    covariates = {"part": part} if design.split == "by" else None
    study = Experiment(arm, cluster, covariates)
    asked = study.ask().effect().means()
    if design.split == "by":
        asked = asked.effect(by="part")
    plan: Any = asked.plan(design.domains, design.epsilon, expected=(0.3, 3))
    return plan, study


def _delta(x: Floats, y: Floats, inside: Any) -> tuple[float, float]:
    """The ratio of some users without privacy, and its variance by the delta method."""
    x = x[inside]
    y = y[inside]
    ratio = x.sum() / y.sum()
    variance = (x - ratio * y).var(ddof=1) / len(x) / y.mean() ** 2
    return float(ratio), float(variance)
