"""What a cap on amounts costs and brings, from public guesses alone.

Amounts above 0 are taken to be lognormal, for which a guess of their median and mean is enough.
Source: docs/experiments.md#how-to-choose-the-cap.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from shoal import checks
from shoal.arrays import Ints
from shoal.errors import InputError
from shoal.files.tables import Tabular
from shoal.files.text_table import Shown, TextTable, counted
from shoal.intervals import half_width, student
from shoal.privacy.budget import Amount, check_epsilon, show
from shoal.trials.forecasting import noise_of_effects, sizes_of

# An effect of so many standard errors is found with a probability of 80%.
_FOUND = 2.8
_CONFIDENCE = 0.95
# Caps that are tried: these times powers of ten, until so much of the mean is left.
_STEPS = (1, 2, 5)
_ALL = 0.9995
_MOST_POWERS = 40
# How many caps are printed.
_SHOWN = 3


class Cap(NamedTuple):
    """What a cap leaves and costs, in the amounts' unit.

    `of_mean` is the part of the expected mean that is left. Half of the 95% interval of the effect
    is `half_width`, and `plain_half_width` without noise. A rise of the part of users with an
    amount by `more_buyers`, or of all amounts by `larger_amounts`, is found with 80%.
    """

    cap: float
    of_mean: float
    half_width: float
    plain_half_width: float
    more_buyers: float
    larger_amounts: float


@dataclass(frozen=True, eq=False)
class Caps(Shown, Tabular):
    """What caps on the sum of a user's amounts leave and cost: public, nothing is spent.

    Attributes:
        rows: A row a cap, rising.
        n: The number of units.
        epsilon: The privacy loss as text.
    """

    rows: tuple[Cap, ...]
    n: int
    epsilon: str

    @cached_property
    def best(self) -> Cap:
        """The cap with which the smallest rise of all amounts is found."""
        return min(self.rows, key=lambda each: each.larger_amounts)

    def table(self) -> pa.Table:
        """All caps that were tried.

        Returns:
            One row a cap, with the columns of `Cap`.
        """
        return pa.Table.from_pylist([each._asdict() for each in self.rows])

    def _text(self) -> TextTable:
        """Returns the best cap, and the ones below and above it."""
        at = self.rows.index(self.best)
        near = self.rows[max(at - 1, 0) : at + 2]
        ordered = [self.best, *(each for each in near if each is not self.best)]
        rows = [
            [
                f"{each.cap:g}",
                f"{each.of_mean:.0%}",
                f"±{each.plain_half_width:.3g}",
                f"±{each.half_width:.3g}",
                f"{each.more_buyers:.1%}",
                f"{each.larger_amounts:.1%}",
            ]
            for each in ordered[:_SHOWN]
        ]
        head = f"caps on the amount of a unit, {counted(self.n, 'unit')}, epsilon {self.epsilon}"
        columns = [
            "cap",
            "of the mean",
            "without noise",
            "95% interval",
            "more buyers",
            "larger amounts",
        ]
        notes = [
            (
                f"the effect would be on amounts capped at {self.best.cap:g}: "
                f"{self.best.of_mean:.0%} of the expected mean"
            ),
            (
                "more buyers, larger amounts: the relative rise of either that is found with 80%; "
                "a lower cap finds more buyers sooner"
            ),
            "a wrong guess costs accuracy, never privacy; the cap must not come from the data",
        ]
        return TextTable(head, columns, rows, notes)


@np.errstate(all="ignore")
def caps(
    sizes: ArrayLike | int, *, share: float, median: float, mean: float, epsilon: Amount
) -> Caps:
    """Shows what each cap on amounts with a long tail would leave and cost, from public guesses.

    The sum of a user's amounts has a domain such as `bins:0:500`, whose upper end is a cap. A low
    one cuts the tail, and a high one costs noise and the variance of the tail.

    Source: docs/experiments.md#how-to-choose-the-cap.

    Args:
        sizes: Units of each cell, shape (clusters, arms), control first; or units in all, of two
            equal arms.
        share: The expected part of units with an amount above 0.
        median: Their expected median, in the amounts' unit.
        mean: Their expected mean, above the median.
        epsilon: The privacy loss of a unit.

    Returns:
        A row a cap; nothing is read and nothing is spent.

    Raises:
        InputError: Numbers that are no guess.

    Example:
        >>> from shoal import trials
        >>> found = trials.caps(40_000, share=0.1, median=40, mean=90, epsilon=1)
        >>> found.best.cap, round(found.best.of_mean, 2)
        (500.0, 0.89)
    """
    table = sizes_of(sizes)
    loss = check_epsilon(epsilon)
    share = checks.number(share, "share", least=1e-6, most=1, example=0.1)
    median = checks.number(median, "median", least=1e-30, most=1e30, example=40)
    mean = checks.number(mean, "mean", least=1e-30, most=1e30, example=90)
    if mean <= median:
        raise InputError(
            "the expected mean is not above the median",
            "amounts with a long tail have a larger mean; else the largest amount is a good cap",
        )
    rows = []
    for cap in _tried(median):
        row = _row(cap, share, median, mean, table, float(loss))
        rows.append(row)
        if row.of_mean >= _ALL:
            break
    return Caps(tuple(rows), int(table.sum()), show(loss))


def _tried(median: float) -> list[float]:
    """Returns round numbers from the median on."""
    first = math.floor(math.log10(median))
    found = [step * 10.0**power for power in range(first, first + _MOST_POWERS) for step in _STEPS]
    return [each for each in found if each >= median]


def _row(cap: float, share: float, median: float, mean: float, sizes: Ints, epsilon: float) -> Cap:
    """Returns what a cap leaves and costs."""
    from scipy.special import ndtr

    place = math.log(median)
    spread = math.sqrt(2 * math.log(mean / median))
    far = (math.log(cap) - place) / spread
    above = float(ndtr(-far))
    # The mean and the mean square of amounts below the cap.
    below = [
        math.exp(k * place + (k * spread) ** 2 / 2) * float(ndtr(far - k * spread)) for k in (1, 2)
    ]
    capped = share * (below[0] + cap * above)
    square = share * (below[1] + cap**2 * above)
    units = sizes.sum(axis=0)
    variance = (square - capped**2) * float((1 / units[[0, -1]]).sum())
    noise = noise_of_effects(sizes, cap, epsilon)[0][0] ** 2
    error = math.sqrt(variance + noise)
    return Cap(
        cap=cap,
        of_mean=capped / (share * mean),
        half_width=half_width(_CONFIDENCE, variance, noise),
        plain_half_width=student(math.inf, _CONFIDENCE) * math.sqrt(variance),
        more_buyers=_FOUND * error / capped,
        larger_amounts=_FOUND * error / (share * below[0]),
    )
