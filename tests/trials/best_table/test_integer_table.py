"""Tables of whole numbers: their loss by brute force, what is refused, and how they draw."""

import bisect
import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from shoal.data.outcome_space import Space
from shoal.errors import InputError
from shoal.privacy.noise import OperatingSystem
from shoal.trials.best_table.choice import best_table
from shoal.trials.best_table.integer_table import ONE, IntegerTable

pytestmark = pytest.mark.property

CHOICES = {
    "two levels": (Space.binary(), Fraction(1)),
    "five levels": (Space.counts(0, 4), Fraction(2)),
    "uneven levels": (Space((0.0, 0.1, 0.7)), Fraction(4)),
    "little is told": (Space.counts(0, 2), Fraction(1, 50)),
    "much is told": (Space.counts(0, 10), Fraction(8)),
}


@cache
def best(name: str) -> IntegerTable:
    """The best table of a choice, when a test first needs it."""
    return best_table(*CHOICES[name]).table


@pytest.mark.parametrize("name", CHOICES)
def test_the_loss_is_that_of_every_two_levels(name: str) -> None:
    """All responses and ordered pairs of levels, by exact ratios."""
    table = best(name)
    largest = max(
        Fraction(row[a], row[b])
        for row in table.numbers.tolist()
        for a, b in itertools.permutations(range(len(table.levels)), 2)
    )
    assert 0 <= float(table.epsilon) - math.log(largest) <= 1e-12 * float(table.epsilon)


@pytest.mark.parametrize("name", CHOICES)
def test_means_and_variances_are_exact(name: str) -> None:
    """In fractions, for every level."""
    table = best(name)
    for level, variance in enumerate(table.variances):
        column = [int(each) for each in table.numbers[:, level]]
        says = [Fraction(table.levels[0]) + Fraction(each) for each in table.shift.tolist()]
        mean = sum((n * s for n, s in zip(column, says, strict=True)), Fraction(0)) / ONE
        assert sum(column) == ONE
        assert mean == Fraction(table.levels[level])
        assert (
            variance
            == sum((n * (s - mean) ** 2 for n, s in zip(column, says, strict=True)), Fraction(0))
            / ONE
        )


@pytest.mark.parametrize("name", CHOICES)
def test_every_border_of_words(name: str) -> None:
    """The first and last word of each response, and words about them, level by level."""
    table = best(name)
    for level in range(len(table.levels)):
        ends = list(itertools.accumulate(int(each) for each in table.numbers[:, level]))
        values = sorted({v for e in ends for v in (e - 1, e, e + 1) if v < ONE} | {0})
        words = np.array([[4 * v, 4 * v + 3] for v in values], dtype=np.uint64).ravel()
        expected = np.repeat([bisect.bisect_right(ends, v) for v in values], 2)
        codes = np.full(len(words), level)
        assert (table.respond(codes, words) == expected).all()


@pytest.mark.parametrize("name", CHOICES)
def test_responses_follow_the_law(name: str) -> None:
    """A million words of the operating system, with a false alarm in 1e9."""
    table, size = best(name), 10**6
    codes = np.random.default_rng(3).integers(0, len(table.levels), size)
    given = table.respond(codes, OperatingSystem().bits(size, 0))
    for level in range(len(table.levels)):
        seen = np.bincount(given[codes == level], minlength=table.responses)
        chance = table.numbers[:, level] / ONE
        assert _p_value(seen, chance) > 1e-9 / 60
        # What another level would say is noticed, where that differs by enough.
        other = table.numbers[:, level - 1] / ONE
        assert _p_value(seen, other) < 1e-9 or name == "little is told"


def _p_value(seen: np.ndarray, chance: np.ndarray) -> float:
    expected = chance * seen.sum()
    often = expected >= 50
    observed = [*seen[often], seen[~often].sum()]
    wanted = [*expected[often], expected[~often].sum()]
    some = np.array(wanted) > 5
    found, hoped = np.array(observed)[some], np.array(wanted)[some]
    return float(stats.chi2.sf(((found - hoped) ** 2 / hoped).sum(), len(found) - 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda shift, numbers: (shift, numbers + np.array([[1, 0], [0, 0]])),
        # Means are right, and what is said of the lowest level is said too often.
        lambda shift, numbers: (
            np.insert(shift, 1, 0.0),
            np.insert(numbers, 1, [ONE // 2, ONE // 2], axis=0),
        ),
        lambda shift, numbers: (shift + 2.0**-40, numbers),
        lambda shift, numbers: (shift[::-1], numbers),
        lambda shift, numbers: (
            shift / 2 + 0.25,
            numbers // ONE * ONE + np.eye(2, dtype=int) * ONE,
        ),
        lambda shift, numbers: (shift * math.nan, numbers),
        lambda shift, numbers: (shift, numbers[:1]),
        lambda shift, numbers: (shift[:0], numbers[:0]),
    ],
)
def test_what_is_no_table_is_refused(change: object) -> None:
    """Columns that do not sum to 1, zeros, and responses with a bias."""
    shift, numbers = np.array([-0.5, 1.5]), np.array([[3, 1], [1, 3]]) * (ONE // 4)
    assert IntegerTable(np.array([0.0, 1.0]), shift, numbers).responses == 2
    with pytest.raises(InputError, match="table"):
        IntegerTable(np.array([0.0, 1.0]), *change(shift, numbers))
