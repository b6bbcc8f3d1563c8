"""True manifests of every kind, method and mechanism, with every branch of each in use."""

import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

import shoal
from shoal import unbiased
from shoal.errors import ShoalWarning
from shoal.trials import Domain, Experiment, Questions
from shoal.trials.questions import noise
from tests.support import methods
from tests.support.gaussian_vectors import always_gaussian
from tests.support.replay_trials import PLANS, SPACES, Make

Manifest = dict[str, Any]

NOISE = shoal.Simulated(8)
_VECTORS = {
    f"vectors, {noise}, {rounds} rounds": {
        "method": "user_clipped",
        "settings": {"rounds": rounds},
        **({"delta": "1e-8"} if noise == "gaussian" else {}),
    }
    for noise in ("laplace", "gaussian")
    for rounds in (1, 2)
}
_CELLS: dict[str, dict[str, Any]] = {
    **{name: each for name, each in methods.METHODS.items() if name != "user_clipped-gaussian"},
    "balanced, shares": {
        "method": "balanced",
        "statistics": ("share_above(20)", "share_above(60)"),
    },
    "balanced, joint, gaussian": {
        "method": "balanced",
        "delta": "1e-6",
        "statistics": ("mean", "variance"),
    },
    "optimal, joint": {"method": "optimal", "statistics": ("mean", "variance")},
    "clip_user, variance": {"method": "clip_user", "statistics": ("variance",)},
}
_MEANS: dict[str, dict[str, Any]] = {
    "clipped": {"method": "clipped_mean", "epsilon": 1},
    "clipped, certified": {"method": "clipped_mean", "epsilon": 1, "interval_by": "certified"},
    "clipped, weighted": {"method": "clipped_mean", "epsilon": 1, "weights": "counts", "cap": 2},
    "symmetric": {"method": "symmetric_mean"},
    "symmetric, weighted": {"method": "symmetric_mean", "weights": "counts"},
    "symmetric, certified": {"method": "symmetric_mean", "interval_by": "certified"},
}


@cache
def manifests() -> dict[str, bytes]:
    """A manifest of each, by name."""
    found = {f"cells: {name}": each for name, each in _cells()}
    found |= {f"distributions: {name}": each for name, each in _distributions()}
    # How good the noise of questions is does not matter here.
    with patch.object(noise, "_SEARCH_STEPS", 5):
        found |= {f"trial: {name}": each for name, each in _trials()}
    return found | {f"mean: {name}": each for name, each in _means()}


def each(kind: str = "") -> Iterator[tuple[str, Manifest]]:
    """Names and manifests that begin with a kind, as JSON objects of their own."""
    return ((name, json.loads(data)) for name, data in manifests().items() if name.startswith(kind))


def _cells() -> Iterator[tuple[str, bytes]]:
    small = methods.tied(3, 14, 3)
    for name, wanted in _CELLS.items():
        plan = methods.plan(small, wanted)
        yield name, plan.release(methods.records(small), noise=NOISE).document
    # Few users have one round alone, with a first ball of 0.
    wanted = {**_VECTORS["vectors, gaussian, 2 rounds"], "delta": "1e-6"}
    with always_gaussian():
        plan = methods.plan(small, wanted, epsilon=1)
    assert plan.gaussian
    yield "vectors, no first round", plan.release(methods.records(small), noise=NOISE).document
    # A private radius and a first round need users and cells.
    large = methods.tied(3, 600, 12)
    for name, wanted in _VECTORS.items():
        with always_gaussian():
            plan = methods.plan(large, wanted)
        release = plan.release(methods.records(large), noise=NOISE)
        first, last = plan.parameters["radii"]
        assert last - first > 1
        assert plan.gaussian == ("gaussian" in name)
        assert (plan.rounds > 1) == ("2 rounds" in name)
        yield name, release.document


def _distributions() -> Iterator[tuple[str, bytes]]:
    small = methods.tied(3, 14, 3)
    bins = ("median", "quantile(0.9)", "histogram(20, 60)", "cdf", "share_between(20, 60)")
    for name, table, statistics in (
        ("squares", small, ("mean", "sum", "std", "variance")),
        ("bins at fixed places", small, bins),
        ("bins", methods.tied(3, 300, 3), bins),
        ("bins beside means", small, ("mean", "median")),
    ):
        # The stated losses of parts, which are rounded up, add up to more than the whole loss.
        plan = methods.plan(table, {"statistics": statistics, "epsilon": 0.9})
        yield name, plan.release(methods.records(table), noise=NOISE).document


def _trials() -> Iterator[tuple[str, bytes]]:
    rng, at = np.random.default_rng(4), np.arange(90)
    group = at % 6 * 3 + at // 6 % 3
    public = {
        "age": rng.integers(10, 20, len(at)).astype(float),
        "sex": np.where(at // 6 % 2, "girl", "boy"),
    }
    study = Experiment(at % 2, at // 2 % 3, public)
    for kind, domain in SPACES.items():
        outcome = rng.uniform(domain.levels[0], domain.levels[-1], len(at))
        for name, make in PLANS.items():
            if kind == "counts" or name == "uniform_prior":
                yield f"{name}, {kind}", _trial(make, study, domain, outcome)
    # Three arms; the last two clusters have cells of one unit, and are taken together.
    arm, cluster = np.append(at % 3, [0, 1, 2, 0, 1, 2, 2]), np.append(at // 45, [2] * 3 + [3] * 4)
    outcome = rng.uniform(0, 10, len(arm))
    three = Experiment(arm, cluster, unit=np.arange(len(arm)), control=0)
    for name in (*list(PLANS)[:4], "histogram"):
        yield f"{name}, three arms", _trial(PLANS[name], three, SPACES["counts"], outcome)
    domain = Domain.bins(-3, 5)
    asked: dict[str, Callable[[Questions], Questions]] = {
        "effects": lambda each: each.effect(),
        "regression": lambda each: each.regression(["arm", "age", "sex", "arm:age"]),
        "several": lambda each: each.effect().means().regression(["sex"]),
        "clusters": lambda each: each.effect("cluster"),
    }
    for name, ask in asked.items():
        for own, of in (
            ("", study),
            (", three arms", Experiment(at % 3, covariates=public, control=0)),
        ):
            outcome = rng.uniform(-3, 5, len(at))
            if of is study or name in ("effects", "several"):
                yield (
                    f"questions, {name}{own}",
                    _trial(lambda e, s, ask=ask: ask(e.ask()).plan(s, 1), of, domain, outcome),  # type: ignore[misc]
                )
    whole = Experiment(at % 2, at // 2 % 3, public, assigned=group, unit=at)
    several = asked["several"](whole.ask())
    outcome = rng.uniform(-3, 5, len(at))
    yield "questions, groups", _trial(lambda _, s: several.plan(s, 0.05), whole, domain, outcome)
    yield "best_table, groups", _trial(PLANS["best_table"], whole, domain, outcome)


def _trial(make: Make, study: Experiment, domain: Domain, outcome: Any) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        plan = make(study, domain)
        return plan.release(outcome, study, outcome_name="score", noise=NOISE).document


def _means() -> Iterator[tuple[str, bytes]]:
    counts = np.arange(300) % 3 + 1
    who = np.repeat(np.arange(300), counts)
    values = np.random.default_rng(5).normal(5, 1, len(who))
    for name, wanted in _MEANS.items():
        if wanted["method"] == "symmetric_mean":
            more: dict[str, Any] = {"epsilon": 2, "delta": "1e-6"}
        else:
            more = {"interval": (0, 10), "bias": 0.1}
        plan = unbiased.plan(counts=counts, moment=unbiased.Moment(2, 1.5), **more, **wanted)
        release = plan.release(values, who, values_name="height", noise=NOISE)
        assert not release.coarse_failed
        yield name, release.document
