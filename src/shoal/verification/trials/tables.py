"""A released table of responses, again: its loss, its means and variances, and its lower bound.

Everything is computed from whole numbers in fractions, the bound in decimals that are far longer
than its tolerance. Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.strict import integers, real, rounded_up, whole
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.lower_bound import Dual
from shoal.verification.trials.privacy import log1p_up

NAMES = {"best_table"}
TABLE = {"kept", "shift", "numbers", "weights", "certificate", "variance", "bound"}
RELEASED = {"kind", "counts", "responses"}
CERTIFICATE = {"weight", "slope", "total"}
_ONE: int = 2**62
# Stated losses may be above the truth by rounding, never below it.
_CLOSE = 1e-9
_MOST_RESPONSES = 4096


@dataclass(frozen=True, eq=False)
class Tables:
    """What a mechanism with a table released.

    Attributes:
        facts: Levels and groups.
        kept: Positions of the levels in use.
        above: Exact distances of these levels from the lowest.
        says: What each response says above the lowest level, exactly.
        rows: Whole numbers of 2^-62: a list of levels for each response.
        weights: Of the levels, for a mean variance; None for the largest.
        dual: Dual variables, for levels that are centred and of width 1.
        variance: Stated.
        bound: Stated.
        counts: Units with each response, clusters x arms x responses.
        codes: Response of every named unit, or None.
    """

    facts: Facts
    kept: list[int]
    above: list[Fraction]
    says: list[Fraction]
    rows: list[list[int]]
    weights: list[Fraction] | None
    dual: Dual
    variance: float
    bound: float
    counts: NDArray[np.int64]
    codes: NDArray[np.int64] | None

    @classmethod
    def of(cls, facts: Facts, mechanism: Document, released: Document) -> Tables:
        """Read and check; ValueError, KeyError or TypeError if something is wrong."""
        told, given = mechanism["table"], released["responses"]
        if released["kind"] != "table" or (given is not None) != facts.named:
            raise ValueError
        kept = [whole(at, 0, len(facts.levels) - 1) for at in told["kept"]]
        says = [Fraction(real(each)) for each in told["shift"]]
        many, size = len(says), len(kept)
        if not 1 <= many <= _MOST_RESPONSES or not size:
            raise ValueError
        numbers = integers(told["numbers"], "numbers", many * size).tolist()
        levels = [Fraction(float(facts.levels[at])) for at in kept]
        weights = told["weights"]
        proof = told["certificate"]
        return cls(
            facts=facts,
            kept=kept,
            above=[level - levels[0] for level in levels],
            says=says,
            rows=[numbers[at * size : (at + 1) * size] for at in range(many)],
            weights=None if weights is None else _listed(weights, size),
            dual=Dual(*(_listed(proof[part], size) for part in ("weight", "slope", "total"))),
            variance=real(told["variance"]),
            bound=real(told["bound"]),
            counts=integers(released["counts"], "counts", facts.sizes.size * many).reshape(
                *facts.sizes.shape, many
            ),
            codes=None if given is None else integers(given, "responses", facts.units),
        )

    @property
    def stretch(self) -> float:
        """How much further responses lie from 0 than levels do, at most."""
        farthest = max(abs(self.says[0]), abs(self.says[-1]))
        return 1.0 + float(farthest) / self.facts.width

    def loss_holds(self, stated: Fraction) -> tuple[bool, str]:
        """Whether the stated loss covers every two levels and every response."""
        if min(map(min, self.rows)) < 1:
            return False, "unbounded: a response that some level never gives"
        ratio = max(Fraction(max(row), min(row)) for row in self.rows)
        true = log1p_up(ratio - 1)
        return rounded_up(stated, true), f"{float(true):.6g}, exactly of {len(self.rows)}"

    def parameters_hold(self) -> tuple[bool, str]:
        """Whether the levels in use are the space's, and probabilities of each sum to 1."""
        kept, most = self.kept, len(self.facts.levels) - 1
        holds = (
            len(kept) > 1
            and kept[0] == 0
            and kept[-1] == most
            and all(low < high for low, high in itertools.pairwise(kept))
            and all(low < high for low, high in itertools.pairwise(self.says))
            and all(sum(column) == _ONE for column in zip(*self.rows, strict=True))
            and self.facts.delta == 0
        )
        return holds, f"{len(self.rows)} responses on {len(kept)} levels"

    def means_hold(self) -> tuple[bool, str]:
        """Whether what is said is on average the level, exactly."""
        holds = all(self._mean(level, 1) == above * _ONE for level, above in enumerate(self.above))
        return holds, "in fractions"

    def variance_holds(self) -> tuple[bool, str]:
        """Whether the stated variance is the largest, or the weighted mean, of the table's own."""
        own = [self._mean(level, 2) / _ONE - above**2 for level, above in enumerate(self.above)]
        true = float(max(own))
        if self.weights is not None:
            fit = min(self.weights) > 0 and abs(float(sum(self.weights)) - 1) <= _CLOSE
            true = float(sum(w * v for w, v in zip(self.weights, own, strict=True)))
            if not fit:
                return False, "weights that are no distribution"
        return abs(self.variance - true) <= _CLOSE * true, f"{true:.6g}"

    def bound_holds(self, epsilon: Fraction) -> tuple[bool, str]:
        """Whether the dual variables prove the stated bound for every table of this loss."""
        if self.weights is not None and self.dual.weight != self.weights:
            return False, "a bound for other weights"
        width = self.above[-1]
        centred = [each / width - Fraction(1, 2) for each in self.above]
        proved = self.dual.proves(centred, epsilon) * float(width) ** 2
        holds = abs(self.bound - proved) <= _CLOSE * proved and self.bound <= self.variance
        return holds, f"{proved:.6g} is proved"

    def counts_hold(self) -> tuple[bool, str]:
        """Whether counts add up to the groups, and are those of the named units' responses."""
        sizes, many = self.facts.sizes, len(self.says)
        holds = bool((self.counts.astype(object).sum(axis=2) == sizes).all())
        if self.codes is not None:
            group = np.repeat(np.arange(sizes.size), sizes.ravel())
            within = int(self.codes.max()) < many
            place = group * many + np.minimum(self.codes, many - 1)
            tallied = np.bincount(place, minlength=self.counts.size)
            holds = holds and within and bool((tallied == self.counts.ravel()).all())
        return holds, f"{self.facts.units} units, {'named' if self.facts.named else 'not named'}"

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean above the lowest level and variance of what is said in each group.

        Variances have the divisor d - 1 and are NaN for one unit.

        Returns:
            Clusters x arms each.
        """
        n, says = self.facts.sizes, np.array([float(each) for each in self.says])
        mean = (self.counts * says).sum(axis=2) / n
        apart = says - mean[..., None]
        squares = (self.counts * apart**2).sum(axis=2) - (self.counts * apart).sum(axis=2) ** 2 / n
        spread = np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan)
        return mean, spread

    def magnitude(self) -> NDArray[np.float64]:
        """Mean sizes of what is said in each group: clusters x arms."""
        says = np.array([abs(float(each)) for each in self.says])
        return np.asarray((self.counts * says).sum(axis=2) / self.facts.sizes)

    def _mean(self, level: int, power: int) -> Fraction:
        """Sum of what is said to a power, times 2^62."""
        return sum(
            (row[level] * says**power for row, says in zip(self.rows, self.says, strict=True)),
            Fraction(0),
        )


def _listed(values: object, size: int) -> list[Fraction]:
    if not isinstance(values, list) or len(values) != size:
        raise ValueError
    found = [real(each) for each in values]
    if not all(map(math.isfinite, found)):
        raise ValueError
    return [Fraction(each) for each in found]
