"""The largest error that a released cell may have: how it is asked for, and which error is meant.

Of plans whose errors are certified it is the worst-case error, of all others the typical error that
the plan states (docs/how-to/which-cells.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from shoal import checks
from shoal.cells.typical_error import SPREAD, typical_errors
from shoal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.statistics.base import Statistic
    from shoal.data.value_lattice import Bounds

# Half of a range is the error of guessing its middle.
HALF = 0.5
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,12})?) ?%")
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,3})?")
# Another machine's logarithms and simulated sums.
_CLOSE = 1e-6


def part_of_range(
    max_error: object, statistics: tuple[Statistic, ...], bounds: Bounds
) -> float | None:
    """A largest error as a part of the range of every statistic.

    Args:
        max_error: A number in the statistic's unit, a percentage of the range such as "5%", or
            None.
        statistics: What is released of every cell.
        bounds: Of the values.

    Raises:
        InputError: It is neither, not above 0, at least half of the range, or a number where there
            are several statistics.

    Example:
        >>> from shoal.cells.statistics.mean import Mean
        >>> from shoal.data.value_lattice import Bounds
        >>> [part_of_range(each, (Mean(),), Bounds(0, 65)) for each in ("10 %", 6.5, None)]
        [0.1, 0.1, None]
    """
    if max_error is None:
        return None
    matched = _PERCENT.fullmatch(max_error) if isinstance(max_error, str) else None
    if matched is not None:
        part = float(matched[1]) / 100
    else:
        number = checks.number(_as_number(max_error), "max_error", above=0, example=5)
        if len(statistics) > 1:
            raise InputError(
                f"a max_error of {number:g} with {len(statistics)} statistics",
                "a percentage of the range, as each has a unit of its own",
                'give for example max_error="5%"',
            )
        part = number / float(statistics[0].statistic_range(bounds)[1])
    if not 0 < part < HALF:
        raise InputError(
            f"a max_error of {part:.3%} of the range",
            "above 0 and below half of the range, which needs no data",
            'give a smaller error in the value\'s unit, or such as "5%" of the range',
        )
    return part


def errors_compared(facts: PlanFacts) -> NDArray[np.float64]:
    """The error of every released cell that a largest error limits, over its range.

    Certified: the largest worst-case error of its statistics. Else the typical error of values
    whose standard deviation is a sixth of the range, as `print(plan)` shows it.

    Args:
        facts: A plan.

    Returns:
        Shape (released cells,).
    """
    if facts.certified:
        return facts.cell_error
    return np.asarray(typical_errors(facts) * SPREAD)


def within(facts: PlanFacts) -> bool:
    """Whether no released cell has a larger error than was asked for, nor than guessing has.

    Args:
        facts: A plan; True if no largest error was asked for.
    """
    most = facts.request.max_error
    if most is None:
        return True
    if (facts.cell_error >= HALF).any():
        return False
    return bool((errors_compared(facts) <= most * (1 + _CLOSE)).all())


def _as_number(given: object) -> object:
    """Texts of numbers come from the command line."""
    if not isinstance(given, str):
        return given
    if _NUMBER.fullmatch(given) is None:
        raise InputError(
            f"max_error is {checks.shown(given)}",
            "a number in the value's unit, or a percentage of the range",
            'give for example max_error=5, or max_error="5%"',
        )
    return float(given)
