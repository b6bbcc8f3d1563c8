"""Variances, standard deviations and shares through the whole release, on made-up flights."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from tests.support import flights
from tests.support.loop import loop_over

THRESHOLD = 400
SHARE = f"share_above({THRESHOLD})"
NAMES = ["mean", "variance", SHARE]
# Of a chance below 1e-9.
SIGMAS = 6.11
ROUNDS = 400


def truth(table: pa.Table) -> dict[tuple[str, str], float]:
    """Every statistic of every place, from the clipped speeds."""
    places = np.array(table.column("place").to_pylist())
    speeds = np.clip(table.column("speed").to_numpy(), *flights.BOUNDS)
    found: dict[tuple[str, str], float] = {}
    for place in np.unique(places).tolist():
        here = speeds[places == place]
        spread = float(here.var())
        values = (float(here.mean()), spread, float((here > THRESHOLD).mean()), math.sqrt(spread))
        found |= {(place, n): x for n, x in zip([*NAMES, "std"], values, strict=True)}
    return found


def exact(plan: shoal.Plan, table: pa.Table) -> NDArray[np.float64]:
    """The truth in the order of a plan's numbers."""
    labels, true = plan.counts.labels, truth(table)
    return np.array([true[labels[g], s.name] for s in plan.statistics for g in plan.planned])


def estimates(plan: shoal.Plan, table: pa.Table, rounds: int = ROUNDS) -> list[Estimates]:
    """Many simulated releases."""
    _, aggregate = flights.records(table).aggregate(
        [each.measure for each in plan.statistics if each.measure is not None]
    )
    drawn = (draw(plan, aggregate, shoal.Simulated(seed)) for seed in range(rounds))
    return [Estimates.of(plan, *each) for each in drawn]


def extreme() -> pa.Table:
    """Half of the aircraft at each bound: the largest variance there is."""
    table = flights.table()
    fast = np.array([str(name)[-1] in "13579" for name in table.column("aircraft").to_pylist()])
    return table.set_column(2, "speed", pa.array(np.where(fast, 700.0, 0.0)))


WISHES: list[dict[str, Any]] = [
    {"statistics": NAMES},
    {"statistics": ["mean", "variance"]},
    {"statistics": ["variance"]},
    {"statistics": ["mean", "variance"], "delta": "1e-6"},
    {"statistics": ["mean", "variance"], "method": "clip_user"},
    {"statistics": NAMES, "method": "optimal"},
]


def plan_of(table: pa.Table, wanted: dict[str, Any]) -> shoal.Plan:
    """At a large epsilon, with every cell."""
    return flights.plan(table, **{"epsilon": 5, "uninformative": "keep", **wanted})


@loop_over("data", [flights.table, extreme])
@loop_over("wanted", WISHES)
def test_errors_intervals_and_ranges(wanted: dict[str, Any], data: Any) -> None:
    """Mean absolute errors stay below what the plan states; intervals cover as stated.

    With 150 simulated releases the average of each number's error may pass its expectation by
    6.11 standard errors, and the cover of a number fall short by as many: a normal variable does
    so once in 1e9. Seeds are fixed.
    """
    table = data()
    plan = plan_of(table, wanted)
    rounds = 150
    found, true = estimates(plan, table, rounds), exact(plan, table)
    unclamped = np.array([each.unclamped for each in found])
    for drawn in (unclamped, np.array([each.value for each in found])):
        error = np.abs(drawn - true)
        slack = SIGMAS * error.std(axis=0) / math.sqrt(rounds)
        assert (error.mean(axis=0) <= plan.worst_case_error + slack).all()
    centre = np.abs(unclamped.mean(axis=0) - true)
    noise = SIGMAS * unclamped.std(axis=0) / math.sqrt(rounds)
    assert (centre <= plan.bias_bound + noise).all()
    values = np.array([each.value for each in found])
    low, high = found[0].range
    assert ((values >= low) & (values <= high)).all()
    ends = [each.intervals(0.9) for each in found]
    covered = np.array([(low <= true) & (true <= high) for low, high in ends]).mean(axis=0)
    assert (covered >= 0.9 - SIGMAS * math.sqrt(0.09 / rounds)).all()
    inside = [(low <= each.value) & (each.value <= high)
              for (low, high), each in zip(ends, found, strict=True)]  # fmt: skip
    assert np.all(inside)


def joint_plan(table: pa.Table, **wanted: Any) -> shoal.Plan:
    """A plan that releases first and second moments together."""
    made = plan_of(table, {"statistics": ["mean", "variance"], **wanted})
    assert made.decision.joint
    return made


def test_joint_estimates_are_unbiased_and_their_noise_is_not_half_as_large() -> None:
    """The estimate of the variance is centred: without 8 b1^2 it would not be."""
    table = flights.table()
    low = table.set_column(2, "speed", pa.array(np.zeros(len(table))))
    plan = joint_plan(low, epsilon=Fraction(1, 5))
    found = np.array([each.unclamped for each in estimates(plan, low)])
    rows = slice(len(plan.planned), None)
    scale = plan.numbers.per_statistic(plan.decision.scale)[0]
    correction = 8 * scale**2 * 700**2 / 4
    noise = SIGMAS * found[:, rows].std(axis=0) / math.sqrt(ROUNDS)
    centre = found[:, rows].mean(axis=0)
    assert (np.abs(centre) <= noise + plan.bias_bound[rows]).all()
    pooled = SIGMAS * (found[:, rows] / correction).std() / math.sqrt(ROUNDS * len(scale))
    assert abs(float((centre / correction).mean())) <= pooled
    assert pooled < 0.5
    error = np.abs(found[:, rows]).mean(axis=0)
    assert (error > plan.worst_case_error[rows] / 2).all()
    assert (error <= plan.worst_case_error[rows]).all()


@pytest.mark.parametrize("epsilon", [0.05, 1, 1000])
@pytest.mark.parametrize("data", [flights.table, extreme], ids=["speeds", "extreme"])
def test_variances_stay_within_what_bounds_allow(data: Any, epsilon: float) -> None:
    """Never negative, never above U^2/4; standard deviations are the roots."""
    table = data()
    for joint in (False, True):
        names = ["mean", "variance"] if joint else ["variance"]
        plan = plan_of(table, {"statistics": names, "epsilon": epsilon})
        for seed in range(2):
            release = plan.release(flights.records(table), noise=shoal.Simulated(seed))
            rows = release.table(confidence=0.9).to_pylist()
            spreads = [row for row in rows if row["statistic"] == "variance"]
            roots = [row for row in rows if row["statistic"] == "std"]
            assert len(spreads) == len(roots) == 4
            for spread, root in zip(spreads, roots, strict=True):
                assert spread["place"] == root["place"]
                known = truth(table)[spread["place"], "variance"]
                assert epsilon < 1000 or spread["value"] == pytest.approx(known, rel=0.5)
                assert 0 <= spread["low"] <= spread["value"] <= spread["high"] <= 700**2 / 4
                for name in ("low", "value", "high"):
                    assert root[name] == pytest.approx(math.sqrt(spread[name]))
                assert root["noise_scale"] is None
                assert root["worst_case_error"] is None
