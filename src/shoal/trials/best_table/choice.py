"""The best table for levels, a loss and what is expected: solved, made whole, with its proof."""

import functools
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError, InputError
from shoal.theory.randomised_response import ratio_for
from shoal.trials.best_table.columns import Program
from shoal.trials.best_table.dual_bound import Certificate
from shoal.trials.best_table.integer_table import IntegerTable
from shoal.trials.best_table.whole_numbers import whole_table
from shoal.trials.choose import check_levels
from shoal.trials.expected import Expected, kinds_of
from shoal.trials.predicted import moved_to
from shoal.trials.unit_release import kept_of

LEAST_EPSILON, MOST_EPSILON = Fraction(1, 100), Fraction(8)
# The search takes seconds up to here, and half a minute up to there.
AUTO_LEVELS, MOST_LEVELS = 32, 64
# The part of an expected distribution that is spread evenly: what is not expected has a bound too.
_EVEN = 0.02


@dataclass(frozen=True, eq=False)
class TableChoice:
    """A table with what it is best for, and the proof of how good it is.

    Attributes:
        kept: Positions of the levels of the space that are in use.
        table: Whole numbers.
        weights: Of the levels in use, shape (K,), for a mean variance; None for the largest.
        certificate: Dual variables.
        bound: No unbiased response of this loss has a smaller variance, in the squared unit.
    """

    kept: tuple[int, ...]
    table: IntegerTable
    weights: NDArray[np.float64] | None
    certificate: Certificate
    bound: float

    @property
    def variances(self) -> NDArray[np.float64]:
        """Of a response, for each level in use, shape (K,), in the squared unit of the outcome."""
        return np.array([float(each) for each in self.table.variances])

    @property
    def variance(self) -> float:
        """What is made least: the largest variance, or the weighted mean."""
        found = self.variances
        return float(found.max() if self.weights is None else self.weights @ found)

    def reason(self, size: int) -> str:
        """One sentence with the figures.

        Args:
            size: Levels of the space.

        Returns:
            What a release says of its table.
        """
        many = len(self.kept)
        part = f"all {size}" if many == size else f"{many} of {size}"
        kind = "worst" if self.weights is None else "mean expected"
        return (
            f"a table of {self.table.responses} responses on {part} levels: a {kind} variance of "
            f"{self.variance:.4g}, at least {self.bound:.4g} for any at this loss"
        )

    def to_document(self) -> documents.Document:
        """The choice as a JSON object.

        Returns:
            Positions, whole numbers, what is best, and the proof.
        """
        proof = self.certificate
        return {
            "kept": list(self.kept),
            **self.table.to_document(),
            "weights": None if self.weights is None else self.weights.tolist(),
            "certificate": {
                "weight": proof.weight.tolist(),
                "slope": proof.slope.tolist(),
                "total": proof.total.tolist(),
            },
            "variance": self.variance,
            "bound": self.bound,
        }


def best_table(
    space: Space,
    epsilon: Fraction,
    levels: int | str = "auto",
    expected: Expected | None = None,
) -> TableChoice:
    """The table of least variance among all unbiased responses of a loss, nearly.

    Without an expectation the largest variance over the levels is made least; with one the mean
    over what is expected, of which a 50th is spread evenly over the levels. The variance is above
    its lower bound by at most 1 part in 10,000 up to epsilon = 4, and by a few beyond;
    `TableChoice.bound` is what holds for this table.

    Source: docs/theory/best-table.md.

    Args:
        space: Levels of the outcome.
        epsilon: The loss of one outcome, 0.01 to 8.
        levels: How many levels to use, evenly spaced: `all`, a number, or `auto` for at most 32.
        expected: What is publicly expected of outcomes, or None.

    Returns:
        The table and the proof; nothing private goes in.

    Raises:
        InputError: An epsilon or a number of levels outside its range, or levels with more digits
            than whole numbers can weigh.

    Example:
        >>> from shoal.data.outcome_space import Space
        >>> found = best_table(Space.counts(0, 2), Fraction(1))
        >>> round(found.variance, 3), found.bound > 0.9999 * found.variance
        (3.933, True)
    """
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise InputError(
            f"epsilon {float(epsilon):.6g} for a table",
            "a number from 0.01 to 8",
            "use UniformPrior beyond",
        )
    kept = _kept(space, levels)
    weights = None if expected is None else _weights(space, kept, expected)
    return _solved(tuple(space.array[list(kept)].tolist()), weights, epsilon, kept)


def table_of(document: documents.Document, space: Space) -> IntegerTable:
    """The table of a document, for a space.

    Args:
        document: Of a mechanism: its table.
        space: Levels of the outcome.

    Raises:
        DocumentError: It is none, or of another space.
    """
    from shoal import documents

    kept = kept_of(document["kept"], space.size)
    shift = np.array(document["shift"], dtype=np.float64)
    numbers = documents.unpack_integers(document["numbers"], "numbers")
    with suppress(ValueError):
        # Of another size, or no table: an InputError is a ValueError, too.
        return IntegerTable(space.array[list(kept)], shift, numbers.reshape(len(shift), len(kept)))
    raise DocumentError(
        "a table of responses that does not hold",
        "a document written by shoal",
        "fetch it again, or have it delivered from the ledger",
    )


def _kept(space: Space, levels: int | str) -> tuple[int, ...]:
    number = check_levels(levels)
    if number == "auto":
        number = min(space.size, AUTO_LEVELS)
    elif number == "all":
        number = space.size
    if int(number) > MOST_LEVELS:
        raise InputError(
            f"a table for {number} levels", f"at most {MOST_LEVELS}", 'give levels="auto"'
        )
    return space.coarse(int(number))


def _weights(space: Space, kept: tuple[int, ...], expected: Expected) -> tuple[float, ...]:
    kinds = kinds_of(expected, space)
    share = kinds.share @ kinds.levels @ moved_to(space.array, kept)
    found = (1 - _EVEN) * share / share.sum() + _EVEN / len(kept)
    return tuple((found / found.sum()).tolist())


@functools.lru_cache(maxsize=64)
def _solved(
    levels: tuple[float, ...],
    weights: tuple[float, ...] | None,
    epsilon: Fraction,
    kept: tuple[int, ...],
) -> TableChoice:
    width = levels[-1] - levels[0]
    centred = (np.array(levels) - levels[0]) / width - 1 / 2
    ratio = float(ratio_for(epsilon))
    priors = None if weights is None else np.array([weights])
    solved = Program(centred, priors, ratio).solve()
    # The bound is one of all tables whose ratio is at most e^epsilon: rounded upwards.
    proof = solved.certificate.repaired(float(np.nextafter(np.exp(float(epsilon)), np.inf)))
    return TableChoice(
        kept,
        whole_table(levels, solved.columns, epsilon),
        None if weights is None else np.array(weights),
        proof,
        max(0.0, proof.bound(centred)) * width**2,
    )
