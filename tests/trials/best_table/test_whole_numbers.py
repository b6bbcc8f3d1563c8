"""From floating point to whole numbers: nothing is lost that counts, and the loss is kept."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.trials.best_table.columns import Columns, Program
from shoal.trials.best_table.whole_numbers import whole_table
from tests.support.loop import loop_over

pytestmark = pytest.mark.property

LEVELS: dict[str, tuple[float, ...]] = {
    "two": (0.0, 1.0),
    "tenths": tuple(each / 10 for each in range(11)),
    "uneven": (0.0, 0.1, 0.5, 0.7, 1.0),
    "far from 0": (1e6, 1e6 + 0.5, 1e6 + 2),
    "very far from 0": (1e9, 1e9 + 1, 1e9 + 2, 1e9 + 5),
    "both signs": (-3.0, -1.0, 5.0),
    "small": (0.0, 1e-40, 3e-40),
    "large": (-1e50, 0.0, 1e50),
}


@loop_over("epsilon", ["1/100", "1/3", "1", "4", "8"])
@loop_over("name", LEVELS)
def test_the_table_is_as_good_as_the_solution(name: str, epsilon: str) -> None:
    """At most epsilon, without bias, and hardly more variance."""
    levels, loss = LEVELS[name], Fraction(epsilon)
    width = levels[-1] - levels[0]
    centred = (np.array(levels) - levels[0]) / width - 0.5
    ratio = math.exp(loss)
    columns = Program(centred, None, ratio).solve().columns
    chance = np.where(columns.likely, ratio, 1.0) * columns.mass[:, None]
    worst = float(((chance * columns.output[:, None] ** 2).sum(axis=0) - centred**2).max())
    # That it is without bias is checked by the table itself, in fractions.
    table = whole_table(levels, columns, loss)
    assert table.epsilon <= loss
    assert float(table.epsilon) >= float(loss) * (1 - 1e-9)
    own = max(float(each / Fraction(width) ** 2) for each in table.variances)
    # What rounding takes is in responses about the middle, of a mass of 2^-24 together.
    assert own == pytest.approx(worst, rel=1e-6, abs=1e-7)


def test_levels_with_too_many_digits_are_refused() -> None:
    """A mean of whole numbers of 2^-62 cannot have any number of digits."""
    columns = Program(np.linspace(-0.5, 0.5, 3), None, math.e).solve().columns
    with pytest.raises(InputError, match="fewer digits"):
        whole_table((1e-30, 1.0, 7.3), columns, Fraction(1))


def test_a_solution_that_is_none_is_refused() -> None:
    """Masses that do not fit are not mended at the cost of privacy."""
    columns = Columns(
        np.array([-1.0, 1.0]), np.array([[True, False], [False, True]]), np.array([0.2, 0.3])
    )
    with pytest.raises(InputError):
        whole_table((0.0, 1.0), columns, Fraction(1))
