"""Column generation: the linear program over all responses, solved without a grid of outputs."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.trials.best_table.dual_bound import Certificate

Floats = NDArray[np.float64]
# The relative distance to the dual bound at which the search ends; rounds in all, and without gain.
GAP, _ROUNDS, _PATIENCE = 5e-5, 400, 30
# Columns that are kept though the last solution did not use them, a level.
_SPARE = 8
_SAME = 1e-12
_PRECISE = 1e-9
# Outputs, in widths from the middle, that the search starts from.
_STARTS = 5


@dataclass(frozen=True, eq=False)
class Columns:
    """Outputs and the levels under which each is likelier by e^epsilon.

    Attributes:
        output: In widths from the middle of the levels, shape (columns,).
        likely: Whether a level has the larger probability, shape (columns, K).
        mass: The smaller probability, shape (columns,).
    """

    output: Floats
    likely: NDArray[np.bool_]
    mass: Floats


@dataclass(frozen=True, eq=False)
class Solved:
    """The solution and what proves how good it is.

    Attributes:
        columns: One for each set of levels.
        certificate: Dual variables with R >= 0 everywhere.
    """

    columns: Columns
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Program:
    """Least largest mean variance of unbiased responses at a ratio of probabilities.

    Attributes:
        levels: Centred, of width 1, rising, shape (K,).
        priors: Above 0, of which the largest mean variance counts, shape (priors, K); None for each
            level on its own.
        ratio: e^epsilon.
    """

    levels: Floats
    priors: Floats | None
    ratio: float

    def solve(self) -> Solved:
        """Columns within `GAP` of the dual bound, or as near as it comes.

        Raises:
            InputError: The solver finds no solution.
        """
        pool = self._start()
        best, near, gained = None, np.inf, 0
        for turn in range(_ROUNDS):
            found = self._restricted(pool)
            if found is None:
                break
            last, value, dual = found
            # Half-way to the best dual so far: prices of the last solution alone swing.
            asked = [dual] if best is None else [dual, dual.half_way(best)]
            repaired = [each.repaired(self.ratio) for each in asked]
            tried = repaired if best is None else [*repaired, best]
            best = max(tried, key=lambda each: each.bound(self.levels))
            distance = value - best.bound(self.levels)
            if distance < near:
                near, gained = distance, turn
            if near <= GAP * value or turn - gained > _PATIENCE:
                break
            pool = self._with(self._kept(last, dual), asked)
        if best is None:
            raise InputError(
                f"a ratio of {self.ratio:.3g} on {len(self.levels)} levels",
                "numbers at which the linear program is solved",
                "use fewer levels, or UniformPrior",
            )
        return Solved(self._joined(last), best)

    def _with(self, kept: Columns, duals: list[Certificate]) -> Columns:
        """These columns and those that dual variables ask for: the pieces of R below 0."""
        for dual in duals:
            least, output, inside = dual.pieces(self.ratio)
            new = least < -_SAME
            kept = Columns(
                np.concatenate([kept.output, output[new]]),
                np.concatenate([kept.likely, inside[new]]),
                np.concatenate([kept.mass, np.zeros(int(new.sum()))]),
            )
        return kept

    @cached_property
    def _mirrored(self) -> bool:
        """Whether levels and priors are their own mirror images."""
        even = bool(np.abs(self.levels + self.levels[::-1]).max() < _SAME)
        same = self.priors is None or bool(np.abs(self.priors - self.priors[:, ::-1]).max() < _SAME)
        return even and same

    @cached_property
    def _sums(self) -> Floats:
        """Rows for even functions of the levels: the means of mirrored pairs."""
        one = np.eye(len(self.levels))
        if not self._mirrored:
            return one
        return np.asarray((one + one[::-1])[: -(-len(one) // 2)] / 2)

    @cached_property
    def _differences(self) -> Floats:
        """Rows for odd functions of the levels."""
        one = np.eye(len(self.levels))
        return np.asarray((one - one[::-1])[: len(one) // 2] / 2) if self._mirrored else one

    @cached_property
    def _weights(self) -> Floats:
        """Whose mean variances count, a row each."""
        return self._sums if self.priors is None else self.priors

    def _start(self) -> Columns:
        """Randomised response, which is unbiased, and cuts between two levels."""
        y, more = self.levels, self.ratio - 1
        size, at = len(y), np.arange(len(y))
        own = (y * (more + size) - y.sum()) / more
        cut = np.linspace(y[-1], y[-1] + 2 / more + 1 / 2, _STARTS)
        above = np.repeat(at[1:, None] <= at, _STARTS, axis=0)
        outputs = np.tile(cut, size - 1)
        output = np.concatenate([own, outputs, -outputs])
        likely = np.vstack([np.eye(size, dtype=np.bool_), above, ~above])
        return Columns(output, likely, np.zeros(len(output)))

    def _chances(self, likely: NDArray[np.bool_]) -> Floats:
        return np.where(likely, 1.0, 1 / self.ratio)

    def _restricted(self, pool: Columns) -> tuple[Columns, float, Certificate] | None:
        """The program with these columns alone: masses, value, dual variables."""
        from scipy.optimize import linprog

        y, output, chance = self.levels, pool.output, self._chances(pool.likely)
        many, weights = len(output), self._weights
        sums, means = self._sums @ chance.T, self._differences @ (chance * output[:, None]).T
        squares = weights @ (chance * output[:, None] ** 2).T
        cost = np.zeros(many + 1)
        cost[-1] = 1
        run: Any = linprog
        found = run(
            cost,
            A_ub=np.hstack([squares, -np.ones((len(squares), 1))]),
            b_ub=weights @ y**2,
            A_eq=np.hstack([np.vstack([sums, means]), np.zeros((len(sums) + len(means), 1))]),
            b_eq=np.concatenate([self._sums.sum(axis=1), self._differences @ y]),
            bounds=[(0, None)] * many + [(None, None)],
            method="highs",
            options={
                "primal_feasibility_tolerance": _PRECISE,
                "dual_feasibility_tolerance": _PRECISE,
            },
        )
        if found.status != 0:
            return None
        part = np.maximum(-found.ineqlin.marginals, 0)
        dual = Certificate(
            part / part.sum() @ weights,
            found.eqlin.marginals[len(sums) :] @ self._differences,
            found.eqlin.marginals[: len(sums)] @ self._sums,
        )
        # A given prior has weight on every level, and is to be the one of the bound.
        dual = dual.evened() if self.priors is None else dual
        return replace(pool, mass=found.x[:many] / self.ratio), float(found.fun), dual

    def _kept(self, pool: Columns, dual: Certificate) -> Columns:
        """Columns in use, and those that cost least otherwise."""
        o = pool.output[:, None]
        values = dual.weight * o**2 - dual.slope * o - dual.total
        cost = (self._chances(pool.likely) * values).sum(axis=1)
        spare = _SPARE * len(self.levels)
        limit = np.sort(cost)[spare] if len(cost) > spare else np.inf
        kept = (pool.mass > 0) | (cost < limit)
        return Columns(pool.output[kept], pool.likely[kept], pool.mass[kept])

    def _joined(self, pool: Columns) -> Columns:
        """One column for each set: joining two at their mean keeps all means, and squares fall."""
        used = pool.mass * self.ratio > _SAME
        output, likely, mass = pool.output[used], pool.likely[used], pool.mass[used]
        if self._mirrored:
            output = np.concatenate([output, -output])
            likely = np.vstack([likely, likely[:, ::-1]])
            mass = np.concatenate([mass, mass]) / 2
        sets, place = np.unique(likely, axis=0, return_inverse=True)
        total: Floats = np.bincount(place.ravel(), mass).astype(np.float64)
        mean = np.bincount(place.ravel(), mass * output) / total
        return Columns(mean, sets, total)
