"""Losses at equal error, and errors at equal loss, of plans for many cells (paper 000, section VI).

No values are drawn: worst-case errors follow from the public counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.cells import caps
from shoal.cells.cell_statistics import MEAN, VARIANCE, InCounts, cell_errors
from shoal.cells.clip_user import clip_user
from shoal.data.occupancy import Counts
from shoal_studies.measure import Effort, carry_out
from shoal_studies.occupancies import itms_many, synthetic
from shoal_studies.paper_error import Cells, Units
from shoal_studies.values import WIDTH

# Numbers by method, and what they have in common.
Found: TypeAlias = "tuple[dict[str, float], float]"
Answer: TypeAlias = "Callable[[Counts, Case, float], Found]"

PAPER = "nothing suppressed, the paper's charge"
PRINTED = "Clip-User as printed"
CLIP = "Clip-User, corrected"
SPARING = "Clip-User, corrected, sparing the best cell"
USERS = "nothing suppressed, charged by user"
CLIP_USERS = "Clip-User, corrected, charged by user"
BALANCED = "balanced noise (ours)"
EQUALISED = "equalised noise (ours)"
OPTIMAL = "optimal plan (ours)"
BOUND = "no plan of its family is below"
OWN = "optimal, no cell worse than before (ours)"
TRUE = "Clip-User as printed, its true error"

MEANS, BOTH = "means only", "means and variances"
DRAWS, _FEW = 10, 12
# Figures of one run share what they measure: by case and question.
_KEPT: dict[tuple[Case, Answer], Measured] = {}


def _printed_bias(dropped: NDArray[np.int64], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Theorem IV.2 as printed, K kept for q dropped in its condition (erratum 1): not a bound."""
    kept = totals - dropped
    product = kept * dropped / totals**2
    quarter = (1 - totals % 2 / totals**2) / 4
    return np.where(dropped == 0, 0.0, np.where(totals > 2 * kept, product, quarter))


AS_PRINTED = InCounts(VARIANCE.sensitivity, lambda q, n: 4 * _printed_bias(q, n))
STATISTICS = {MEANS: (MEAN,), BOTH: (MEAN, VARIANCE)}
_PRINTED = {MEANS: (MEAN,), BOTH: (MEAN, AS_PRINTED)}
_RANGES = {MEANS: (WIDTH,), BOTH: (WIDTH, WIDTH**2 / 4)}
UNITS = {MEANS: Units(WIDTH, 0.0), BOTH: Units(WIDTH, WIDTH**2)}


@dataclass(frozen=True)
class Case:
    """What is measured: an occupancy, or ten of a kind.

    Attributes:
        gamma: Of the synthetic occupancies; None for the ITMS-like one.
        statistics: `MEANS` or `BOTH`.
        epsilons: Losses of one cell.
        draws: Occupancies; one if ITMS-like.
        seed: Of the first.
    """

    gamma: float | None
    statistics: str
    epsilons: tuple[float, ...]
    draws: int
    seed: int

    def occupancies(self) -> list[Counts]:
        """One a draw."""
        first = self.seed * DRAWS
        if self.gamma is None:
            return [itms_many(self.seed)]
        return [synthetic(self.gamma, first + draw) for draw in range(self.draws)]


@dataclass(frozen=True, eq=False)
class Measured:
    """Losses or errors by method, one row a draw, one column a loss of a cell.

    Attributes:
        case: What was measured.
        of: Arrays of shape (draws, points) by method.
        allowed: The error, or the loss, that all methods have in common, same shape.
    """

    case: Case
    of: dict[str, NDArray[np.float64]]
    allowed: NDArray[np.float64]

    def mean(self, method: str) -> NDArray[np.float64]:
        """Over the draws."""
        return np.asarray(self.of[method].mean(axis=0))

    def spread(self, method: str) -> NDArray[np.float64]:
        """Standard error of that mean; 0 of one draw."""
        found = self.of[method]
        if len(found) == 1:
            return np.zeros(found.shape[1])
        return np.asarray(found.std(axis=0, ddof=1) / len(found) ** 0.5)

    @property
    def epsilon(self) -> NDArray[np.float64]:
        """Losses of one cell."""
        return np.array(self.case.epsilons)

    @property
    def guess(self) -> float:
        """Error of guessing."""
        return UNITS[self.case.statistics].guess

    @property
    def uninformative(self) -> NDArray[np.bool_]:
        """Where the error allowed is no better than guessing, in some draw."""
        return np.asarray((self.allowed >= self.guess).any(axis=0))


def losses(case: Case, effort: Effort) -> Measured:
    """Total losses of all methods at the error of the worst cell with nothing suppressed."""
    return _measured(case, losses_of, effort)


def errors(case: Case, effort: Effort) -> Measured:
    """Errors of the worst cell of all methods, at the loss that the paper charges Clip-User."""
    return _measured(case, errors_of, effort)


def suppressions(case: Case, effort: Effort) -> Measured:
    """Losses of Clip-User, and what it leaves of errors, without any plan of ours."""
    return _measured(case, suppressed_of, effort)


def _measured(case: Case, answer: Answer, effort: Effort) -> Measured:
    if (case, answer) not in _KEPT:
        tasks = [
            _Task(occupancy, case, epsilon, answer)
            for occupancy in case.occupancies()
            for epsilon in case.epsilons
        ]
        # A second process takes as long to start as a few points.
        workers = effort.workers if len(tasks) > _FEW else 1
        points = list(effort.progress(carry_out(_point, tasks, workers), len(tasks)))
        shape = (-1, len(case.epsilons))
        _KEPT[case, answer] = Measured(
            case,
            {
                name: np.array([of[name] for of, _ in points]).reshape(shape)
                for name in points[0][0]
            },
            np.array([allowed for _, allowed in points]).reshape(shape),
        )
    return _KEPT[case, answer]


@dataclass(frozen=True, eq=False)
class _Task:
    """One occupancy at one loss of a cell."""

    occupancy: Counts
    case: Case
    epsilon: float
    answer: Answer


def _point(task: _Task) -> Found:
    return task.answer(task.occupancy, task.case, task.epsilon)


@dataclass(frozen=True, eq=False)
class Suppression:
    """Who is left where, and the error that no suppression was allowed to exceed."""

    kept: NDArray[np.bool_]
    most_cells: int
    limit: float
    loss: float


def suppress(occupancy: Counts, case: Case, epsilon: float, method: str) -> Suppression:
    """Clip-User at one loss a cell."""
    cost = _cost(_PRINTED if method == PRINTED else STATISTICS, case, epsilon)
    kept = clip_user(
        occupancy.user, occupancy.cell, occupancy.count, cost, spare_best=method == SPARING
    )
    start = cost(*_sums(occupancy, occupancy.count), occupancy.totals)
    most = int(np.bincount(occupancy.user[kept]).max())
    return Suppression(kept, most, float(start.max()), most * epsilon)


def _cost(
    forms: dict[str, tuple[InCounts, ...]], case: Case, epsilon: float
) -> Callable[..., NDArray[np.float64]]:
    return cell_errors(forms[case.statistics], epsilon, _RANGES[case.statistics])


def losses_of(occupancy: Counts, case: Case, epsilon: float) -> Found:
    """Losses by method, and the error they have in common."""
    everything = np.ones(len(occupancy.count), dtype=np.bool_)
    clipped = suppress(occupancy, case, epsilon, CLIP)
    error, cells = clipped.limit, Cells(occupancy, UNITS[case.statistics])
    best = cells.optimal(cells.alike(error))
    found = {
        PAPER: float(occupancy.cells_per_user.max()) * epsilon,
        PRINTED: suppress(occupancy, case, epsilon, PRINTED).loss,
        CLIP: clipped.loss,
        SPARING: suppress(occupancy, case, epsilon, SPARING).loss,
        USERS: _charge(occupancy, case, epsilon, everything),
        CLIP_USERS: _charge(occupancy, case, epsilon, clipped.kept),
        BALANCED: cells.balanced(error),
        EQUALISED: cells.equalised(error),
        OPTIMAL: best.value,
        BOUND: best.lower_bound,
    }
    if case.gamma is None:
        found[OWN] = cells.optimal(_errors(occupancy, case, epsilon, everything)).value
    return found, error


def errors_of(occupancy: Counts, case: Case, epsilon: float) -> Found:
    """Errors of the worst cell by method, and the loss they have in common."""
    clipped = suppress(occupancy, case, epsilon, CLIP)
    printed = suppress(occupancy, case, epsilon, PRINTED)
    sparing = suppress(occupancy, case, epsilon, SPARING)
    cells = Cells(occupancy, UNITS[case.statistics])
    best = cells.optimal_error(clipped.loss)
    claimed, true = _capped_as_printed(occupancy, case, epsilon, printed.kept)
    found = {
        PAPER: clipped.limit,
        PRINTED: claimed,
        TRUE: true,
        CLIP: _capped(occupancy, case, epsilon, clipped),
        # At the same loss of a cell: what it loses in all is more, as users are left in more cells.
        SPARING: _capped(occupancy, case, epsilon, sparing),
        BALANCED: cells.balanced(1.0) / clipped.loss,
        EQUALISED: cells.equalised(1.0) / clipped.loss,
        OPTIMAL: best.value,
        BOUND: best.lower_bound,
    }
    return found, clipped.loss


def suppressed_of(occupancy: Counts, case: Case, epsilon: float) -> Found:
    """Errors of the worst cell after Clip-User and capping; the loss that the paper charges."""
    clipped = suppress(occupancy, case, epsilon, CLIP)
    sparing = suppress(occupancy, case, epsilon, SPARING)
    found = {
        PAPER: clipped.limit,
        CLIP: _capped(occupancy, case, epsilon, clipped),
        SPARING: _capped(occupancy, case, epsilon, sparing),
    }
    return found, clipped.loss


def _capped(occupancy: Counts, case: Case, epsilon: float, clipped: Suppression) -> float:
    count = _left(occupancy, clipped.kept, _cost(STATISTICS, case, epsilon))
    return float(_cell_errors(occupancy, case, epsilon, count).max())


def _left(
    occupancy: Counts, kept: NDArray[np.bool_], cost: Callable[..., NDArray[np.float64]]
) -> NDArray[np.int64]:
    """Records of each membership after the capping step."""
    sizes = occupancy.cell, occupancy.count, kept, occupancy.n_cells
    cap = caps.after_suppression(*sizes, cost)
    return np.where(kept, np.minimum(occupancy.count, cap[occupancy.cell]), 0)


def _capped_as_printed(
    occupancy: Counts, case: Case, epsilon: float, kept: NDArray[np.bool_]
) -> tuple[float, float]:
    """Errors after the capping step, with the bias as printed and as it is."""
    cost = _cost(_PRINTED, case, epsilon)
    count = _left(occupancy, kept, cost)
    claimed = cost(*_sums(occupancy, count), occupancy.totals)
    return float(claimed.max()), float(_cell_errors(occupancy, case, epsilon, count).max())


def _errors(
    occupancy: Counts, case: Case, epsilon: float, kept: NDArray[np.bool_]
) -> NDArray[np.float64]:
    return _cell_errors(occupancy, case, epsilon, np.where(kept, occupancy.count, 0))


def _cell_errors(
    occupancy: Counts, case: Case, epsilon: float, count: NDArray[np.int64]
) -> NDArray[np.float64]:
    """True errors of the cells with these records of each membership."""
    return _cost(STATISTICS, case, epsilon)(*_sums(occupancy, count), occupancy.totals)


def _charge(occupancy: Counts, case: Case, epsilon: float, kept: NDArray[np.bool_]) -> float:
    """The same noise, charged user by user: max_l sum_g Delta_gl / b_g.

    Source: docs/theory/accounting.md.
    """
    statistics = STATISTICS[case.statistics]
    count = np.where(kept, occupancy.count, 0)
    heaviest, records = _sums(occupancy, count)
    lost = np.zeros(len(count))
    for statistic in statistics:
        noise = statistic.sensitivity(heaviest, records) / (epsilon / len(statistics))
        moved = statistic.sensitivity(count, records[occupancy.cell])
        # One user alone in a cell with one record: no variance, no noise, no loss.
        lost += np.divide(moved, noise[occupancy.cell], out=np.zeros(len(count)), where=moved > 0)
    return float(np.bincount(occupancy.user, lost).max())


def _sums(
    occupancy: Counts, count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Heaviest count and records of each cell."""
    heaviest = np.zeros(occupancy.n_cells, dtype=np.int64)
    np.maximum.at(heaviest, occupancy.cell, count)
    records = np.zeros(occupancy.n_cells, dtype=np.int64)
    np.add.at(records, occupancy.cell, count)
    return heaviest, records
