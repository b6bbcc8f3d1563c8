"""Finds the unbiased randomiser of least variance at a privacy loss, by a linear program.

A column of the program is an output, a mass, and the set of levels under which the output is
likelier by e^epsilon: such columns suffice. Dual variables say where new ones help, so that no grid
of outputs is needed, and they prove a bound. Levels are moved to the range from -1/2 to 1/2.
Source: docs/theory/experiments.md#the-best-table.
"""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from shoal.arrays import Bools, Floats
from shoal.documents.model import Model, Numbers
from shoal.errors import InputError
from shoal.theory.randomised_response import ratio_for
from shoal.trials.randomiser import ONE, ResponseTable

LEAST_EPSILON = Fraction(1, 100)
MOST_EPSILON = Fraction(8)
# The search takes seconds for this many levels.
AUTO_LEVELS = 32
# The search takes half a minute for this many levels, the most that it takes.
MOST_LEVELS = 64
# The search ends at this relative distance to the bound.
GAP = 5e-5
# The search ends after this many rounds.
_ROUNDS = 400
# The search ends after this many rounds without gain.
_PATIENCE = 30
# For each level, this many columns that the last solution did not use are kept.
_SPARE = 8
# This part of the weights is spread evenly: a weight of 0 would leave a level without a parabola.
_EVEN = 1e-7
# Floating-point sums of some hundred terms of size 1 may be off by this.
_ROUNDING = 1e-13
# Numbers that differ by less are equal.
_SAME = 1e-12
# This part of the mass of all columns goes to one more response, which takes what rounding leaves.
_FILL = 2.0**-22
# Columns of less mass are left out.
_LEAST_MASS = 1e-13


class _Pieces(NamedTuple):
    """The least R between any two breaks, the output where it is, and the levels with h < 0."""

    least: Floats
    output: Floats
    inside: Bools


class Proof(Model):
    """Dual variables of the program over all columns, shape (K,) each.

    Each level y has the parabola h_y(o) = weight_y o^2 - slope_y o - total_y of the output o, and
    R(o) = sum_y h_y(o) + (e^epsilon - 1) sum_y min(h_y(o), 0). If R >= 0 everywhere, no unbiased
    response has a weighted mean variance below sum (total_y + slope_y y - weight_y y^2)
    (docs/theory/experiments.md#the-dual-bound). `mean_of` holds the weights of the mean variance
    that was made least; it is None if the largest variance was.
    """

    weight: Numbers
    slope: Numbers
    total: Numbers
    mean_of: Numbers | None = None

    def half_way(self, other: "Proof") -> "Proof":
        """Returns the mean of two proofs."""
        return Proof(
            weight=(self.weight + other.weight) / 2,
            slope=(self.slope + other.slope) / 2,
            total=(self.total + other.total) / 2,
        )

    def bound(self, levels: Floats) -> float:
        """Returns the lower bound, if R >= 0 everywhere, in the squared unit of the levels."""
        width = levels[-1] - levels[0]
        y = (levels - levels[0]) / width - 1 / 2
        return self.least(y) * float(width) ** 2

    def least(self, y: Floats) -> float:
        """Returns the lower bound for levels that lie from -1/2 to 1/2."""
        return float(self.total.sum() + self.slope @ y - self.weight @ y**2)

    def pieces(self, ratio: float) -> _Pieces:
        """Returns the pieces of R, whose breaks are where an h changes its sign."""
        discriminant = self.slope**2 + 4 * self.weight * self.total
        root = np.sqrt(np.maximum(discriminant, 0))
        # A sum of two terms of one sign loses no digits; the other root follows from this one.
        larger = (self.slope + np.where(self.slope >= 0, root, -root)) / 2
        one_root = larger / self.weight
        # Both roots are 0 where `larger` is.
        other_root = np.divide(-self.total, larger, out=one_root.copy(), where=larger != 0)
        # A parabola without roots is nowhere below 0.
        low = np.where(discriminant > 0, np.minimum(one_root, other_root), np.inf)
        high = np.where(discriminant > 0, np.maximum(one_root, other_root), np.inf)
        breaks = np.unique(np.concatenate([low, high]))
        breaks = breaks[np.isfinite(breaks)]
        breaks = breaks if breaks.size else np.zeros(1)
        ends = np.concatenate([breaks[:1] - 2, breaks, breaks[-1:] + 2])
        middle = ends[:-1] + np.diff(ends) / 2
        inside = (middle[:, None] > low) & (middle[:, None] < high)
        # On a piece R is the parabola a o^2 - b o - c, in which levels inside count `ratio` times.
        factor = np.where(inside, ratio, 1.0)
        a = factor @ self.weight
        b = factor @ self.slope
        c = factor @ self.total
        # The outer pieces have no outer end.
        ends[0] = -np.inf
        ends[-1] = np.inf
        output = np.clip(b / (2 * a), ends[:-1], ends[1:])
        return _Pieces(a * output**2 - b * output - c, output, inside)

    def repaired(self, ratio: float) -> "Proof":
        """Returns the proof with all totals lowered until R is nowhere below 0."""
        least = float(self.pieces(ratio).least.min())
        size = 1 + float(np.abs(self.total).sum() + np.abs(self.slope).sum()) * ratio
        # Lowering a total raises R by at least as much.
        lowered = max(0.0, -least) + _ROUNDING * size
        return self.model_copy(update={"total": self.total - lowered / len(self.total)})


class TableColumns(NamedTuple):
    """Columns: outputs, the levels under which each is likelier, and the smaller probability."""

    output: Floats
    likely: Bools
    mass: Floats


class _Solution(NamedTuple):
    """The columns of a solved program with their masses, its value, and its dual variables."""

    columns: TableColumns
    value: float
    dual: Proof


def best_table(
    levels: Floats, epsilon: Fraction, weights: Floats | None = None
) -> tuple[ResponseTable, Proof]:
    """Returns nearly the table whose largest variance over the levels is smallest, and a proof.

    With weights, it is the weighted mean variance that is smallest.
    """
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise InputError(
            f"the best table does not take epsilon {float(epsilon):.6g}",
            'give a number from 0.01 to 8, or mechanism="uniform_prior"',
        )
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"{len(levels)} levels are too many for a table",
            f'give at most {MOST_LEVELS}, or levels="auto"',
        )
    ratio = float(ratio_for(epsilon))
    program = _Program((levels - levels[0]) / (levels[-1] - levels[0]) - 1 / 2, weights, ratio)
    columns, proof = program.solve()
    # The bound must hold for all tables whose ratio is at most e^epsilon, rounded upwards.
    upper = float(np.nextafter(np.exp(float(epsilon)), np.inf))
    proof = proof.repaired(upper).model_copy(update={"mean_of": weights})
    return whole(levels, columns, epsilon), proof


class _Program:
    """The linear program of `best_table`, for levels from -1/2 to 1/2 and a ratio e^epsilon."""

    def __init__(self, levels: Floats, weights: Floats | None, ratio: float) -> None:
        self.levels = levels
        self.ratio = ratio
        self.mirrored = float(np.abs(levels + levels[::-1]).max()) < _SAME
        if weights is not None:
            self.mirrored &= float(np.abs(weights - weights[::-1]).max()) < _SAME
        self.sums = self.differences = np.eye(len(levels))
        if self.mirrored:
            # Levels and weights are their own mirror images, so that half of the rows suffice.
            half = len(levels) // 2
            mirror = self.sums[::-1]
            self.differences = (self.sums - mirror)[:half] / 2
            self.sums = (self.sums + mirror)[: len(levels) - half] / 2
        self.worst_case = weights is None
        # The largest of some mean variances is made least, and this has the weights of each of
        # them: of the one mean that was asked for, else of the single levels, or of mirrored pairs.
        self.weights = self.sums if weights is None else weights[None]

    def solve(self) -> tuple[TableColumns, Proof]:
        """Returns columns whose value is within `GAP` of the bound, or as near as it comes."""
        pool = self._start()
        columns = None
        best: Proof | None = None
        smallest_distance = np.inf
        last_gain = 0
        for turn in range(_ROUNDS):
            solution = self._restricted(pool)
            if solution is None:
                break
            columns, value, dual = solution
            duals = [dual]
            proofs = [] if best is None else [best]
            if best is not None:
                # Dual variables oscillate from round to round; half-way to the best are steadier.
                duals.append(dual.half_way(best))
            proofs = [*(each.repaired(self.ratio) for each in duals), *proofs]
            best = max(proofs, key=lambda each: each.least(self.levels))
            distance = value - best.least(self.levels)
            if distance < smallest_distance:
                smallest_distance = distance
                last_gain = turn
            if smallest_distance <= GAP * value or turn - last_gain > _PATIENCE:
                break
            pool = self._with(self._kept(columns, dual), duals)
        if columns is None or best is None:
            raise InputError(
                f"the linear program was not solved for a ratio of {self.ratio:.3g} on "
                f"{len(self.levels)} levels",
                'use fewer levels, or mechanism="uniform_prior"',
            )
        return self._joined(columns), best

    def _start(self) -> TableColumns:
        """Returns the columns of randomised response, which is unbiased, and cuts between levels.

        A cut is likelier under all levels on one side of it.
        """
        y = self.levels
        more = self.ratio - 1
        place = np.arange(len(y))
        of_level = (y * (more + len(y)) - y.sum()) / more
        # For each cut five outputs are tried, from the highest level outwards.
        tried = np.linspace(y[-1], y[-1] + 2 / more + 1 / 2, 5)
        above_cut = np.repeat(place[1:, None] <= place, len(tried), axis=0)
        of_cut = np.tile(tried, len(y) - 1)
        output = np.concatenate([of_level, of_cut, -of_cut])
        likely = np.vstack([np.eye(len(y), dtype=np.bool_), above_cut, ~above_cut])
        return TableColumns(output, likely, np.zeros(len(output)))

    def _restricted(self, pool: TableColumns) -> _Solution | None:
        """Solves the program with these columns alone; None if the solver fails.

        Its variables are the masses of the columns, and last the variance that is made least.
        """
        from scipy.optimize import linprog

        y = self.levels
        output = pool.output[:, None]
        # The probability of a column under each level, divided by its mass: (columns, levels).
        chance = np.where(pool.likely, 1.0, 1 / self.ratio)
        many = len(output)
        # Under every level probabilities sum to 1, and the mean output is the level.
        sums = self.sums @ chance.T
        means = self.differences @ (chance * output).T
        equalities = np.vstack([sums, means])
        # No mean square is above the square of the level by more than the last variable.
        squares = self.weights @ (chance * output**2).T
        precise = dict.fromkeys(
            ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-9
        )
        run: Any = linprog
        found = run(
            np.append(np.zeros(many), 1.0),
            A_ub=np.hstack([squares, -np.ones((len(squares), 1))]),
            b_ub=self.weights @ y**2,
            A_eq=np.hstack([equalities, np.zeros((len(equalities), 1))]),
            b_eq=np.concatenate([self.sums.sum(axis=1), self.differences @ y]),
            bounds=[(0, None)] * many + [(None, None)],
            method="highs",
            options=precise,
        )
        if found.status != 0:
            return None
        dual = self._dual(found.ineqlin.marginals, found.eqlin.marginals)
        columns = pool._replace(mass=found.x[:many] / self.ratio)
        return _Solution(columns, float(found.fun), dual)

    def _dual(self, of_squares: Floats, of_equalities: Floats) -> Proof:
        """Returns the dual variables of all levels, from the marginals of the program's rows."""
        # They are at most 0 but for rounding.
        part = np.maximum(-of_squares, 0)
        weight = part / part.sum() @ self.weights
        if self.worst_case:
            weight = (1 - _EVEN) * weight + _EVEN / len(weight)
        many = len(self.sums)
        total = of_equalities[:many] @ self.sums
        slope = of_equalities[many:] @ self.differences
        return Proof(weight=weight, slope=slope, total=total)

    def _kept(self, pool: TableColumns, dual: Proof) -> TableColumns:
        """Returns the columns in use, and those of the others that cost least."""
        output = pool.output[:, None]
        parabolas = dual.weight * output**2 - dual.slope * output - dual.total
        cost = (np.where(pool.likely, 1.0, 1 / self.ratio) * parabolas).sum(axis=1)
        spare = _SPARE * len(self.levels)
        limit = np.sort(cost)[spare] if len(cost) > spare else np.inf
        kept = (pool.mass > 0) | (cost < limit)
        return TableColumns(*(each[kept] for each in pool))

    def _with(self, kept: TableColumns, duals: list[Proof]) -> TableColumns:
        """Adds the columns that dual variables ask for, which are the pieces of R below 0."""
        for dual in duals:
            least, output, inside = dual.pieces(self.ratio)
            new = least < -_SAME
            kept = TableColumns(
                np.append(kept.output, output[new]),
                np.vstack([kept.likely, inside[new]]),
                np.append(kept.mass, np.zeros(int(new.sum()))),
            )
        return kept

    def _joined(self, pool: TableColumns) -> TableColumns:
        """Joins columns that are likelier under the same levels into one at their mean output.

        Means stay the same, and mean squares do not grow. A mirrored program had half of the rows:
        the mean of its solution and of the mirror image of that meets the other half.
        """
        output, likely, mass = pool
        if self.mirrored:
            output = np.concatenate([output, -output])
            mass = np.concatenate([mass, mass]) / 2
            likely = np.vstack([likely, likely[:, ::-1]])
        sets, set_of_column = np.unique(likely, axis=0, return_inverse=True)
        total = np.bincount(set_of_column.ravel(), mass).astype(np.float64)
        used = total > _LEAST_MASS
        mean = np.bincount(set_of_column.ravel(), mass * output)[used] / total[used]
        return TableColumns(mean, sets[used], total[used])


def whole(levels: Floats, columns: TableColumns, epsilon: Fraction) -> ResponseTable:
    """Returns a table in whole numbers of 2^-62, whose ratios are at most e^epsilon.

    One more response takes the mass that rounding leaves.
    """
    ratio = ratio_for(epsilon)
    rows = []
    for likely, mass in zip(columns.likely.tolist(), columns.mass.tolist(), strict=True):
        smaller = int(mass * (1 - _FILL) * ONE)
        larger = smaller * ratio.numerator // ratio.denominator
        rows.append([larger if is_likely else smaller for is_likely in likely])
    rows.append([ONE - sum(column) for column in zip(*rows, strict=True)])
    if min(map(min, rows)) < 1:
        raise InputError("the levels are too close to each other", "use fewer levels")
    numbers = np.array(rows, dtype=np.int64)
    # Outputs are places in the range of levels, from -1/2 to 1/2.
    value = np.append(columns.output, 0.0)
    width = levels[-1] - levels[0]
    y = (levels - levels[0]) / width - 1 / 2
    chance = numbers.T / ONE
    # Rounded probabilities have other means: two least squares steps make them the levels again.
    for _ in range(2):
        value = value + np.linalg.pinv(chance) @ (y - chance @ value)
    order = np.argsort(value, kind="stable")
    # A table has its outputs less the lowest level.
    above_lowest = (value[order] + 1 / 2) * width
    table = ResponseTable(levels, above_lowest, numbers[order])
    if table.epsilon(Fraction(0)) > epsilon:
        raise InputError(
            "the table cannot be written in whole numbers", 'use mechanism="uniform_prior"'
        )
    return table
