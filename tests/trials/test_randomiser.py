"""Response tables: loss, means and variances by fractions, and every border of words."""

import bisect
import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from shoal.arrays import Floats
from shoal.errors import InputError
from shoal.trials.best_table import best_table
from shoal.trials.randomiser import ONE, PART, ResponseTable, even, with_prior

pytestmark = pytest.mark.property

NO_DELTA = Fraction(0)
LEVELS: dict[str, tuple[Floats, Fraction]] = {
    "two levels": (np.array([0.0, 1.0]), Fraction(1)),
    "five levels": (np.arange(5.0), Fraction(2)),
    "uneven levels": (np.array([-3.0, 0.1, 0.7]), Fraction(4)),
    "little is told": (np.arange(3.0), Fraction(1, 50)),
    "much is told": (np.arange(11.0), Fraction(8)),
}
PRIOR = np.array([PART // 10, PART // 2, PART - PART // 10 - PART // 2])


@cache
def table(name: str) -> ResponseTable:
    """A best table, a uniform one, or one with another prior."""
    kind, _, of = name.partition(": ")
    if kind == "prior":
        return with_prior(np.array([0.0, 2.0, 3.0]), PART // 3, PRIOR)
    levels, epsilon = LEVELS[of]
    if kind == "uniform":
        return ResponseTable.uniform(levels, epsilon, NO_DELTA)
    return best_table(levels, epsilon)[0]


TABLES = [*(f"{kind}: {name}" for kind in ("best", "uniform") for name in LEVELS), "prior"]


@pytest.mark.parametrize("name", TABLES)
def test_loss_means_and_variances_are_those_of_fractions(name: str) -> None:
    """All responses and pairs of levels; the loss is that which was asked for, nearly."""
    found = table(name)
    rows = found.numbers.tolist()
    largest = max(
        Fraction(row[a], row[b])
        for row in rows
        for a, b in itertools.permutations(range(len(found.levels)), 2)
    )
    stated = float(found.epsilon(NO_DELTA))
    assert 0 <= stated - math.log(largest) <= 1e-12 * stated
    if name != "prior":
        asked = float(LEVELS[name.partition(": ")[2]][1])
        assert asked * (1 - 1e-6) <= stated <= asked
    width = found.levels[-1] - found.levels[0]
    says = [Fraction(found.levels[0]) + Fraction(each) for each in found.above.tolist()]
    for at, level in enumerate(found.levels.tolist()):
        column = [Fraction(row[at], ONE) for row in rows]
        assert sum(column) == 1
        mean = sum((p * s for p, s in zip(column, says, strict=True)), Fraction(0))
        assert abs(mean - Fraction(level)) <= 1e-12 * max(map(abs, says)) + 1e-12 * width
        square = sum((p * (s - mean) ** 2 for p, s in zip(column, says, strict=True)), Fraction(0))
        assert found.variances[at] == pytest.approx(float(square), rel=1e-9)


@pytest.mark.parametrize("name", ["best: five levels", "uniform: much is told", "prior"])
def test_every_border_of_words(name: str) -> None:
    """The first and last word of each response, and words about them, level by level."""
    found = table(name)
    for level in range(len(found.levels)):
        ends = list(itertools.accumulate(found.numbers[:, level].tolist()))
        values = sorted({v for e in ends for v in (e - 1, e, e + 1) if v < ONE} | {0})
        words = np.array([[4 * v, 4 * v + 3] for v in values], dtype=np.uint64).ravel()
        expected = np.repeat([bisect.bisect_right(ends, v) for v in values], 2)
        assert (found.respond(np.full(len(words), level), words) == expected).all()


@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 10)])
def test_with_a_delta_the_loss_is_that_of_every_set(delta: Fraction) -> None:
    """max over pairs and sets of P(S) - e^epsilon P'(S) is delta at the stated epsilon."""
    found = ResponseTable.uniform(np.arange(4.0), Fraction(1), delta)
    epsilon = float(found.epsilon(delta))
    assert 1 - 1e-6 < epsilon <= 1
    chance = found.numbers.T / ONE
    sticks = [
        float(np.maximum(chance[a] - math.exp(epsilon) * chance[b], 0).sum())
        for a, b in itertools.permutations(range(4), 2)
    ]
    assert max(sticks) == pytest.approx(float(delta), rel=1e-6)
    with pytest.raises(InputError, match="table of responses takes no delta"):
        table("best: five levels").epsilon(delta)


def test_tables_that_are_none_are_refused() -> None:
    """Columns that do not sum to 1, nothing of a response, values with a bias."""
    good = table("uniform: five levels")
    less = good.numbers.copy()
    less[0, 0] -= 1
    none = good.numbers * (np.arange(5)[:, None] > 0)
    for numbers, values in (
        (less, good.above),
        (none, good.above),
        (good.numbers, good.above * (1 + 1e-9)),
        (good.numbers[1:], good.above[1:]),
    ):
        with pytest.raises(InputError):
            ResponseTable(good.levels, values, numbers)
    with pytest.raises(InputError, match="replace every outcome"):
        ResponseTable.uniform(np.arange(256.0), Fraction(1, 10**9), NO_DELTA)
    assert even(3).sum() == PART
