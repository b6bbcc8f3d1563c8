"""Ratios of sums: intervals by another formula, coverage, and what is refused."""

import json
import math
import re
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.errors import DataError, InputError, ShoalWarning
from shoal.trials import Domain, Experiment
from shoal.trials.questions.ratios import RatiosPlan
from shoal.trials.questions.sides import Interval
from shoal.verification.recount import recount

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
DOMAINS = Domain.counts(0, 10), Domain.counts(1, 50)
LEVELS = np.arange(1, 51)
# Sessions of a user: most have one, few many.
ZIPF = LEVELS**-2.2 / (LEVELS**-2.2).sum()
EVEN = np.full(50, 0.02)


class Quiet(shoal.Simulated):
    """Noise that is none."""

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The steps themselves."""
        return list(steps)


def users(rng: Any, shape: Any, rate: float, law: Any = ZIPF) -> tuple[Any, Any]:
    """Conversions and sessions of users with conversion rates of their own."""
    sessions = rng.choice(LEVELS, size=shape, p=law)
    own = rng.beta(8 * rate, 8 * (1 - rate), size=shape)
    return np.minimum(rng.binomial(sessions, own), 10.0), sessions.astype(float)


def test_without_noise_intervals_are_those_of_fieller() -> None:
    """The quadratic whose roots are its ends, with Student's quantile; differences by MOVER."""
    from scipy.stats import t

    rng = np.random.default_rng(3)
    sizes = 900, 500
    sides = [users(rng, n, rate) for n, rate in zip(sizes, (0.1, 0.3), strict=True)]
    x, y = (np.concatenate(each) for each in zip(*sides, strict=True))
    study = Experiment(np.repeat([0, 1], sizes))
    plan = study.ask().means().plan(DOMAINS, 100, expected=(0.3, 3))
    assert isinstance(plan, RatiosPlan)
    drawn = plan.respond((x, y), Quiet(0))
    noisy = [*plan.sides(plan.blocks[0].block, drawn)]
    found = [each.interval(0.95) for each in plan.without_noise(noisy)]
    ends = []
    for arm, (own, sessions) in enumerate(sides):
        n = len(own)
        square = t.ppf(0.975, n - 1) ** 2 / n
        cov = np.cov(own, sessions)
        a = sessions.mean() ** 2 - square * cov[1, 1]
        b = own.mean() * sessions.mean() - square * cov[0, 1]
        c = own.mean() ** 2 - square * cov[0, 0]
        root = math.sqrt(b * b - a * c)
        ratio = own.mean() / sessions.mean()
        ends.append((ratio, (b - root) / a, (b + root) / a))
        told = found[arm]
        assert (told.value, told.low, told.high) == pytest.approx(ends[arm], rel=1e-6)
    (one, one_low, one_high), (other, other_low, other_high) = ends[::-1]
    effect = found[1].less(found[0])
    low = one - other - math.hypot(one - one_low, other_high - other)
    high = one - other + math.hypot(one_high - one, other - other_low)
    assert (effect.low, effect.high) == pytest.approx((low, high), rel=1e-5)
    lift = found[1].lift(found[0])
    logs = math.log(one / one_low), math.log(other_high / other)
    assert lift.value == pytest.approx(one / other - 1, rel=1e-6)
    assert lift.low == pytest.approx(one / other * math.exp(-math.hypot(*logs)) - 1, rel=1e-5)


@pytest.mark.parametrize(
    ("sizes", "epsilon", "law"),
    [((200, 200), 4.0, ZIPF), ((400, 4000), 1.0, ZIPF), ((300, 300), 8.0, EVEN)],
)
def test_intervals_cover(sizes: tuple[int, int], epsilon: float, law: Any) -> None:
    """In 400 releases of users who are drawn anew at least 94%; this takes 4 s."""
    rng = np.random.default_rng(11)
    rates = 0.13, 0.10
    large = [users(rng, 10**6, rate, law) for rate in rates]
    truth = [x.sum() / y.sum() for x, y in large]
    study = Experiment(np.repeat([0, 1], sizes))
    plan = study.ask().effect().means().plan(DOMAINS, epsilon, expected=(0.3, 3))
    assert isinstance(plan, RatiosPlan)
    hits = {"effect": 0, "ratio of arm 0": 0}
    true = {"effect": truth[1] - truth[0], "ratio of arm 0": truth[0]}
    for turn in range(400):
        sides = [users(rng, n, rate, law) for n, rate in zip(sizes, rates, strict=True)]
        both = [np.concatenate(each) for each in zip(*sides, strict=True)]
        found = plan.read(plan.respond(both, shoal.Simulated(turn)), 0.95)
        for name in hits:
            low, high = found[name].interval
            hits[name] += low <= true[name] <= high
    assert min(hits.values()) >= 0.94 * 400


def test_a_denominator_that_may_be_all_noise() -> None:
    """The plan warns, intervals have no end, and texts, tables and manifests can say so."""
    study = Experiment([0, 1] * 50)
    domains = Domain.counts(0, 5), Domain.counts(0, 20)
    with pytest.warns(ShoalWarning, match="at this size nothing is learned of some ratio"):
        plan = study.ask().means().plan(domains, "1/10", expected=(0.3, 2))
    found = plan.release((np.ones(100), np.ones(100)), study, noise=shoal.Simulated(2))
    told = found.estimate()["ratio of arm 0"]
    assert math.isinf(told.interval[1])
    assert "inf" in str(found.estimate())
    again = type(found.estimate()).of_documents([told.to_document()], "", ())
    assert again[0].interval == told.interval


def test_noise_beyond_the_ranges_leaves_what_is_possible_and_follows() -> None:
    """No draw fails before its charge, intervals have a length, and other code finds the same."""
    study = Experiment([0, 1] * 30)
    unknown = 0
    for domains, epsilon in (
        ((Domain.bins(-10, 20), Domain.counts(0, 20)), "1/2"),
        ((Domain.counts(0, 5), Domain.counts(1, 20)), "1/2"),
    ):
        plan = study.ask().effect().means().plan(domains, epsilon, lift=True)
        for turn in range(8):
            rng = np.random.default_rng(turn)
            both = rng.integers(0, 6, 60).astype(float), np.ones(60)
            found = plan.release(both, study, outcome_name="x", noise=shoal.Simulated(turn))
            assert not recount(json.loads(json.dumps(found.record)))
            for each in found.estimate():
                assert each.interval[0] < each.interval[1]
                unknown += math.isnan(each.value)
    assert unknown


def test_a_ratio_in_clusters_and_subgroups() -> None:
    """Ratios of weighted means, not means of ratios; no noise shows it."""
    rng = np.random.default_rng(5)
    cluster = np.repeat([0, 1, 2], [300, 200, 100])
    arm = rng.permuted(np.arange(600) % 2)
    x, y = users(rng, 600, 0.2)
    study = Experiment(arm, cluster, {"sex": np.arange(600) % 3 % 2})
    plan = study.ask().effect().effect(by="sex").plan(DOMAINS, 10**4, expected=(0.5, 3))
    found = plan.release((x, y), study, noise=Quiet(0)).estimate()

    def ratio(inside: Any) -> float:
        sums = np.zeros(2)
        for each in range(3):
            units = inside & (cluster == each)
            weight = ((cluster == each) & rest).sum() / rest.sum()
            sums += weight * np.array([x[units].mean(), y[units].mean()])
        return float(sums[0] / sums[1])

    for name, rest in (
        ("effect", np.ones(600, dtype=bool)),
        ("effect where sex is 1", np.arange(600) % 3 % 2 == 1),
    ):
        wanted = ratio(rest & (arm == 1)) - ratio(rest & (arm == 0))
        assert found[name].value == pytest.approx(wanted, abs=1e-6)
    assert found["effect where sex is 1"].subgroup == "1"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda asked: asked.plan((DOMAINS[0], Domain.bins(-1, 3)), 1), "begins at -1; give one"),
        (lambda asked: asked.plan([*DOMAINS, DOMAINS[0]], 1), "there are 3 domains; give two"),
        (lambda asked: asked.plan(DOMAINS[0], 1, lift=True), "expected and lift are about ratios"),
        (lambda asked: asked.plan(DOMAINS, 1, expected=(20, 3)), "expected is 20"),
        (lambda asked: asked.regression(["arm"]).plan(DOMAINS, 1), "takes effects and means"),
        (lambda asked: asked.plan(DOMAINS, "1e-7"), "epsilon 1e-07 is too small"),
    ],
)
def test_what_no_ratio_has(make: Any, told: str) -> None:
    """Refused before anything is read."""
    asked = Experiment([0, 1] * 50).ask().effect()
    with pytest.raises(InputError, match=re.escape(told)):
        make(asked)


def test_one_outcome_is_no_ratio() -> None:
    """Both outcomes are given, and neither as a public column."""
    study = Experiment([0, 1] * 50)
    plan = study.ask().effect().plan(DOMAINS, 1)
    assert isinstance(plan, RatiosPlan)
    with pytest.raises(DataError, match="a ratio has two outcomes"):
        plan.release(5, study, noise=shoal.Simulated(1))
    with pytest.raises(DataError, match="outcomes and arms differ in length"):
        plan.release((np.ones(100), np.ones(99)), study, noise=shoal.Simulated(1))


def test_lifts_of_what_may_be_nothing_are_unknown() -> None:
    """A logarithm of 0 is no number."""
    nothing = Interval(0.0, 0.0, 0.0, 0.2)
    told = nothing.lift(Interval(0.1, 0.2, 0.2, 0.3))
    assert (told.low, told.high) == (-1.0, math.inf)
    assert math.isnan(told.value)
