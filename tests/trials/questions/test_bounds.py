"""Bounds whatever missing outcomes are: the loss of every move, coverage, and what is refused."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.errors import DataError, InputError
from shoal.trials import Domain, Experiment
from shoal.trials.questions.bounds import BoundsPlan
from shoal.trials.questions.numbers import BITS
from tests.trials.questions.test_numbers import Steps
from tests.trials.questions.test_ratios import Quiet

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
DOMAIN = Domain.bins(0, 4)
NOTHING = float("nan")
# Of six users in two arms.
OTHERS = np.array([4.0, NOTHING, 1, 0, 3, 2])


def plan_for(epsilon: Any, by: bool = False) -> BoundsPlan:
    """With subgroups that overlap with arms if asked."""
    study = Experiment([0, 0, 0, 1, 1, 1], covariates={"sex": [0, 0, 1, 0, 1, 1]} if by else None)
    asked = study.ask().effect().means()
    asked = asked.effect(by="sex") if by else asked
    found = asked.plan(DOMAIN, epsilon, missing="worst")
    assert isinstance(found, BoundsPlan)
    return found


def most_lost(plan: BoundsPlan, times: tuple[float, float] = (1, 1)) -> Fraction:
    """The most that any move moves all numbers by; those of missing ones and squares `times`."""
    most = 0.0
    for unit in (0, 4):
        drawn = []
        for own in (*np.linspace(0, 4, 33), NOTHING):
            outcomes = OTHERS.copy()
            outcomes[unit] = own
            found = plan.respond(outcomes, Steps(0))
            drawn.append([np.array(each, dtype=object) for each in found.model_dump().values()])
        for one, other in itertools.combinations(drawn, 2):
            moved = [int(np.abs(a - b).sum()) for a, b in zip(one, other, strict=True)]
            most = max(most, moved[0] + moved[1] * times[0] + moved[2] * times[1])
    return Fraction(most) / 2**BITS


@pytest.mark.parametrize(("epsilon", "by"), [("1/10", False), (4, False), (1, True)])
def test_no_outcome_and_no_missing_one_loses_more_than_stated(epsilon: Any, by: bool) -> None:
    """The stated loss is attained to a millionth, unless subgroups share numbers."""
    plan = plan_for(epsilon, by)
    most = most_lost(plan)
    assert most <= plan.loss.epsilon <= Fraction(epsilon)
    if not by:
        assert most >= Fraction(epsilon) * (1 - Fraction(1, 10**6))


def test_less_noise_loses_more() -> None:
    """A fifth less on the numbers of missing outcomes, or on second moments."""
    plan = plan_for(1)
    assert most_lost(plan, (1.25, 1)) > 1.1
    assert most_lost(plan, (1, 1.25)) > 1.01


def test_without_noise_missing_outcomes_are_at_either_end() -> None:
    """In clusters and in both arms; the value has them in the middle."""
    rng = np.random.default_rng(2)
    arm = rng.permuted(np.arange(400) % 2)
    cluster = np.arange(400) // 200
    outcome = rng.choice([0.0, 1, 4, NOTHING], 400)
    study = Experiment(arm, cluster)
    plan = study.ask().effect().plan(DOMAIN, 10**4, missing="worst")
    assert isinstance(plan, BoundsPlan)
    drawn = plan.respond(outcome[study.rows], Quiet(0))
    (block,) = plan.blocks
    sides = [each.interval(0.95) for each in plan.sides(block.block, drawn)]
    ends = []
    for at in (1, 0):
        own = []
        for filled in (0.0, 4.0):
            whole = np.where(np.isnan(outcome), filled, outcome)
            means = [whole[(arm == at) & (cluster == each)].mean() for each in (0, 1)]
            own.append(np.mean(means))
        ends.append(own)
    for side, (low, high) in zip(sides, ends, strict=True):
        assert (side.bottom, side.top) == pytest.approx((low, high), abs=1e-5)
    effect = block.questions[0].interval(sides)
    assert effect.bottom == pytest.approx(ends[0][0] - ends[1][1], abs=1e-5)
    assert effect.low < effect.bottom < effect.top < effect.high


def test_intervals_cover_the_worst_that_may_be_missing() -> None:
    """All missing are highest in one arm and lowest in the other: 300 releases, in 3 s."""
    rng = np.random.default_rng(7)
    domain = Domain.bins(0, 20)
    n = 500
    study = Experiment(np.repeat([0, 1], n))
    plan = study.ask().effect().plan(domain, 1, missing="worst")
    assert isinstance(plan, BoundsPlan)
    hits = 0
    for turn in range(300):
        gone = rng.random(2 * n) < 0.1
        arm = np.repeat([0, 1], n)
        whole = np.clip(rng.gamma(2, 1.5 + 0.3 * arm), 0, 20)
        outcome = np.where(gone, NOTHING, whole)
        found = plan.read(plan.respond(outcome, shoal.Simulated(turn)), 0.95)
        low, high = found["effect"].interval
        # The mean of the gamma distribution is cut by next to nothing.
        hits += low <= (3.6 * 0.9 + 20 * 0.1) - 3.0 * 0.9 <= high
    assert hits >= 0.94 * 300


def test_differences_of_means_that_noise_fills_cover() -> None:
    """Ends are cut to the range after a comparison; the plan says that nothing is learned."""
    study = Experiment(np.repeat([0, 1], 10))
    plan = study.ask().effect().means().plan("binary", "1/10", missing="worst")
    assert isinstance(plan, BoundsPlan)
    assert "at this size nothing is learned" in str(plan)
    rng = np.random.default_rng(3)
    hits = 0
    for turn in range(100):
        outcome = (rng.random(20) < np.repeat([0.1, 0.9], 10)).astype(float)
        found = plan.read(plan.respond(outcome, shoal.Simulated(turn)), 0.95)
        low, high = found["effect"].interval
        assert -1 <= low <= high <= 1
        hits += low <= 0.8 <= high
    assert hits >= 94


def test_what_has_no_bounds() -> None:
    """Ratios and regressions; other plans refuse missing outcomes, and none infinite ones."""
    study = Experiment([0, 1] * 50)
    asked = study.ask().effect()
    with pytest.raises(InputError, match="a ratio has no missing outcomes"):
        asked.plan((DOMAIN, DOMAIN), 1, missing="worst")
    with pytest.raises(InputError, match='missing="worst" takes effects and means'):
        asked.regression(["arm"]).plan(DOMAIN, 1, missing="worst")
    outcomes = np.where(np.arange(100) == 3, NOTHING, 1.0)
    release = {"study": study, "noise": shoal.Simulated(1)}
    with pytest.raises(DataError, match='with bounds, missing="worst"'):
        asked.plan(DOMAIN, 1).release(outcomes, **release)
    plan = asked.plan(DOMAIN, 1, missing="worst")
    assert plan.release(outcomes, **release).estimate()["effect"].statistic == "effect"
    far = np.where(outcomes == 1, 1.0, np.inf)
    ends = [plan.release(each, **release).estimate()["effect"].value for each in (far, outcomes)]
    assert ends[0] != ends[1]
