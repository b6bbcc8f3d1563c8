"""The best table for a space: bars, randomised response, expectations and refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shoal import documents
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError, InputError
from shoal.trials.best_table.choice import best_table, table_of
from shoal.trials.expected import Expected, kinds_of

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(("epsilon", "bar"), [(1, 0.9973), (2, 0.2160), (4, 0.0313)])
def test_the_bars_of_eleven_levels(epsilon: int, bar: float) -> None:
    """The worst variance of whole numbers, and the proved distance to the best."""
    found = best_table(Space.bins(0, 1, 11), Fraction(epsilon))
    assert found.variance <= bar
    assert 0 <= found.variance - found.bound <= 1e-4 * found.variance
    assert found.variance == float(max(found.table.variances))


@pytest.mark.parametrize("epsilon", ["1/100", "1", "4", "8"])
def test_two_levels_are_randomised_response(epsilon: str) -> None:
    """Nothing unbiased beats it on two levels."""
    found = best_table(Space.binary(), Fraction(epsilon))
    odds = math.exp(Fraction(epsilon))
    assert found.variance == pytest.approx(odds / (odds - 1) ** 2, rel=4e-4)
    heavy = found.table.numbers.max(axis=1) > 2**45
    assert heavy.sum() == 2
    says = found.table.debiased[heavy]
    assert says == pytest.approx([-1 / (odds - 1), odds / (odds - 1)], rel=1e-4)


@pytest.mark.parametrize("epsilon", [1, 4])
def test_thirty_two_levels(epsilon: int) -> None:
    """As many as are used unless more are asked for."""
    found = best_table(Space.bins(0, 1, 32), Fraction(epsilon))
    assert found.variance == pytest.approx({1: 0.9976, 4: 0.03172}[epsilon], rel=2e-4)
    assert found.variance - found.bound <= 1e-4 * found.variance


def test_an_expectation_lowers_the_mean_variance() -> None:
    """What is expected counts, and the worst level may be worse for it."""
    space, expected = Space.counts(0, 15), Expected(mean=2, sd=1.5)
    plain = best_table(space, Fraction(4))
    found = best_table(space, Fraction(4), expected=expected)
    kinds = kinds_of(expected, space)
    share = kinds.share @ kinds.levels
    assert found.weights is not None
    assert abs(found.weights - share).max() < 0.02
    assert found.weights @ found.variances < 0.75 * (found.weights @ plain.variances)
    assert found.variances.max() > plain.variance
    assert found.bound <= found.variance <= found.bound * (1 + 2e-4)


def test_levels_in_use() -> None:
    """Few are evenly spaced; of many no more than 32 are used unless asked for."""
    wide = Space.counts(0, 80)
    assert best_table(wide, Fraction(1), 3).kept == (0, 40, 80)
    assert len(best_table(wide, Fraction(1, 2)).kept) == 32
    assert best_table(Space.counts(0, 4), Fraction(1), "all").kept == (0, 1, 2, 3, 4)
    with pytest.raises(InputError, match="at most 64"):
        best_table(wide, Fraction(1), "all")


@pytest.mark.parametrize("epsilon", ["1/101", "9", "1000"])
def test_losses_beyond_the_solver_are_refused(epsilon: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(InputError, match="UniformPrior"):
        best_table(Space.binary(), Fraction(epsilon))


def test_a_document_is_read_or_refused() -> None:
    """What is read is a table of this space, whatever it says."""
    space = Space.counts(0, 3)
    found = best_table(space, Fraction(1))
    document = found.to_document()
    assert np.array_equal(table_of(document, space).numbers, found.table.numbers)
    for name, value in {
        "kept": [0, 1, 1, 3],
        "shift": document["shift"][1:],
        "numbers": documents.pack_integers(found.table.numbers.ravel()[::-1]),
    }.items():
        with pytest.raises(DocumentError):
            table_of({**document, name: value}, space)
    with pytest.raises(DocumentError):
        table_of(document, Space((0.0, 1.0, 2.0, 3.5)))
