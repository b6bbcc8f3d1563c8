"""Users' vectors in an l2 ball with Gaussian noise: every small data set, losses, values, books."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

import shoal
from shoal.cells.estimates.typical_error import typical_errors
from shoal.cells.mechanisms.ranges import USER
from shoal.cells.mechanisms.user_vectors import excess_of
from tests.cells.mechanisms.test_user_vectors import CASES, plan_of
from tests.support import draws
from tests.support.loop import loop_over

DELTA = "1e-6"


def _tail(move: float, epsilon: float) -> float:
    """Delta of normal noise for two outcomes that are so many deviations apart."""
    near, far = move / 2 - epsilon / move, -move / 2 - epsilon / move
    return float(stats.norm.cdf(near) - math.exp(epsilon) * stats.norm.cdf(far))


@loop_over("counts", CASES.values())
@loop_over("epsilon", ["0.01", 1, 30, 60])
def test_the_parts_of_the_loss_add_up(counts: dict[tuple[str, int], int], epsilon: object) -> None:
    """Pure selections and the excess, and noise that hides the diameter at what they leave."""
    plan = plan_of(counts, epsilon, DELTA)
    selections = sum(Fraction(2 * USER) / Fraction(each) for each in plan.decision.selection_scale)
    parts, bits = excess_of(plan.parameters)
    selections += Fraction(parts, 2**bits)
    assert plan.exact_epsilon <= Fraction(str(epsilon))
    assert plan.exact_loss.delta == Fraction(DELTA)
    left = float(plan.exact_epsilon - selections)
    move = 2 * int(plan.parameters["ball"][0]) / 2**plan.decision.bits
    assert _tail(move, left) <= float(DELTA)
    assert _tail(move, left * (1 - 1e-3)) > float(DELTA)
    assert float(plan.exact_epsilon) >= float(str(epsilon)) * (1 - 1e-4)
    assert plan.rho is not None
    assert plan.rho >= move**2 / 2 + float(selections) ** 2 / 2
    assert (plan.user_losses >= plan.rho).all()
    assert (plan.user_losses <= plan.rho * (1 + 1e-11)).all()


def test_noise_has_the_deviation_that_is_charged() -> None:
    """9,600 numbers around the same centre are normal with the stated scales."""
    users, cells = np.repeat(np.arange(50), 80), np.tile(np.arange(80), 50)
    table = _table(users, cells, np.full(4000, 0.5))
    records = shoal.Records(
        table, user="who", value="value", bounds=(0, 1), by="at", counts="public"
    )
    plan = shoal.plan(
        records.counts(), bounds=(0, 1), epsilon="0.5", delta=DELTA, method="user_clipped"
    )
    assert plan.gaussian
    drawn, sums = [], records.aggregate()[1]
    for turn in range(120):
        numbers = draws.drawn(plan, sums, turn)
        scaled = (numbers.unclamped - 0.5) / numbers.noise_scale
        # Without a private range everybody is at the centre: what is left is noise.
        drawn.extend(scaled.tolist())
    assert len(plan.decision.selection_scale) == 0
    assert stats.kstest(drawn, "norm").pvalue > 1e-6
    assert stats.kstest(drawn, "laplace").pvalue < 1e-9


def _table(
    user: NDArray[np.int64], cell: NDArray[np.int64], value: NDArray[np.float64]
) -> pa.Table:
    return pa.table({"who": pa.array(user), "at": pa.array(cell), "value": pa.array(value)})


def _crowded() -> tuple[shoal.Records, NDArray[np.float64]]:
    """300 users, each in 30 cells, who differ; the cells' means."""
    rng = np.random.default_rng(5)
    user, cell = np.repeat(np.arange(300), 30), np.tile(np.arange(30), 300)
    own, place = rng.normal(0, 6, 300)[user], rng.normal(0, 5, 30)[cell]
    value = np.clip(40 + own + place + rng.normal(0, 5, len(user)), 0, 100)
    table = _table(user, cell, value)
    records = shoal.Records(
        table, user="who", value="value", bounds=(0, 100), by="at", counts="public"
    )
    return records, np.bincount(cell, value) / 300


def test_noise_is_that_with_the_smaller_typical_error() -> None:
    """Users in 30 cells get Gaussian noise, users in one cell Laplace noise."""
    records, _ = _crowded()
    plan = shoal.plan(records.counts(), bounds=(0, 100), epsilon=1, delta=DELTA)
    pure = shoal.plan(records.counts(), bounds=(0, 100), epsilon=1)
    assert plan.gaussian
    assert typical_errors(plan).mean() < typical_errors(pure).mean()
    alone = shoal.Counts.from_counts(np.arange(300), np.arange(300) % 3, np.ones(300, dtype=int))
    plan = shoal.plan(alone, bounds=(0, 100), epsilon=1, delta=DELTA, method="user_clipped")
    assert (plan.gaussian, plan.delta) == (False, 0)


@pytest.mark.parametrize("delta", ["1e-100", "1e-40", "1e-20"])
@pytest.mark.parametrize("epsilon", ["1e-6", 1, 10_000])
def test_deltas_that_no_lattice_serves_are_not_used(delta: str, epsilon: object) -> None:
    """Then the noise is Laplace; no plan fails for a small delta."""
    counts = shoal.Counts.from_counts([0, 0, 0, 1], [0, 1, 2, 2], [1, 1, 1, 2])
    wanted = {"bounds": (0, 1), "method": "user_clipped", "tick_bits": 1, "min_users": 1}
    plan = shoal.plan(counts, epsilon=epsilon, delta=delta, **wanted)
    assert plan.exact_epsilon <= Fraction(str(epsilon))
    assert not plan.gaussian or delta == "1e-20"
