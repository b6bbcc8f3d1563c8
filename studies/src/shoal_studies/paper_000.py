"""Paper 000, figures 1 to 8: losses at equal error and errors at equal loss, in many cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import largest
from shoal.cells.mechanisms import caps
from shoal.cells.mechanisms.cell_statistics import MEAN, VARIANCE, InCounts, cell_errors
from shoal.cells.planners.clip_user import clip_user
from shoal.data.counts import Counts
from shoal_studies.chart import Chart, Row
from shoal_studies.data import WIDTH, itms_many, synthetic
from shoal_studies.paper_000_plans import Cells, Units
from shoal_studies.registry import Finding, Study, column, listed, span, spans, study
from shoal_studies.simulate import Effort, carry_out

Floats: TypeAlias = "NDArray[np.float64]"
Flags: TypeAlias = "NDArray[np.bool_]"
# Numbers by method, and what they have in common.
Found: TypeAlias = tuple[dict[str, float], float]

MEANS = "means only"
BOTH = "means and variances"
PAPER = "nothing suppressed, the paper's charge"
PRINTED = "Clip-User as printed"
TRUE = "Clip-User as printed, its true error"
CLIP = "Clip-User, corrected"
SPARING = "Clip-User, corrected, sparing the best cell"
USERS = "nothing suppressed, charged by user"
CLIP_USERS = "Clip-User, corrected, charged by user"
BALANCED = "balanced noise (ours)"
EQUALISED = "equalised noise (ours)"
OWN = "optimal, no cell worse than before (ours)"
OPTIMAL = "optimal plan (ours)"
BOUND = "no plan of its family is below"

UNITS = {MEANS: Units(WIDTH, 0.0), BOTH: Units(WIDTH, WIDTH**2)}
STATISTICS = {MEANS: (MEAN,), BOTH: (MEAN, VARIANCE)}
RANGES = {MEANS: (WIDTH,), BOTH: (WIDTH, WIDTH**2 / 4)}
GAMMAS = (3, 6, 9)
DRAWS = 10
_FEW = 12
# The paper's synthetic figures end at 1, those of ITMS at 2. Its errors of means and variances are
# hardly better than guessing there, so ours go on.
_SYNTHETIC = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
# An error at a given loss takes several times the work of a loss at a given error.
_FEWER = (0.1, 0.3, 1.0, 3.0)
_ITMS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
# Both ends of the paper's axis, and one beyond of ours.
_QUICK = (0.1, 1.0, 3.0)
_QUICK_ITMS = (0.1, 1.0, 2.0)
_ALIKE = 0.9
_LEAST = 1e-4
_SLACK = 1e-9


def _printed_bias(dropped: NDArray[np.int64], totals: NDArray[np.int64]) -> Floats:
    """Theorem IV.2 as printed, K kept for q dropped in its condition (erratum 1): not a bound."""
    kept = totals - dropped
    product = kept * dropped / totals**2
    quarter = (1 - totals % 2 / totals**2) / 4
    return np.where(dropped == 0, 0.0, np.where(totals > 2 * kept, product, quarter))


AS_PRINTED = InCounts(VARIANCE.sensitivity, lambda q, n: 4 * _printed_bias(q, n))


def _cost(statistics: str, epsilon: float, *, printed: bool = False) -> Callable[..., Floats]:
    forms = (MEAN, AS_PRINTED) if printed and statistics == BOTH else STATISTICS[statistics]
    return cell_errors(forms, epsilon, RANGES[statistics])


def suppress(
    counts: Counts, statistics: str, epsilon: float, *, printed: bool = False, spare: bool = False
) -> tuple[Flags, float]:
    """Memberships that Clip-User keeps at one loss a cell, and the loss that the paper charges."""
    cost = _cost(statistics, epsilon, printed=printed)
    kept = clip_user(counts.user, counts.cell, counts.count, cost, spare_best=spare)
    return kept, int(np.bincount(counts.user[kept]).max()) * epsilon


def losses(counts: Counts, statistics: str, epsilon: float, *, own: bool = False) -> Found:
    """Total losses by method, and their common error: the worst with nothing suppressed."""
    before = _cell_errors(counts, statistics, epsilon, counts.count)
    kept, loss = suppress(counts, statistics, epsilon)
    error = float(before.max())
    cells = Cells(counts, UNITS[statistics])
    best = cells.optimal(cells.alike(error))
    found = {
        PAPER: float(counts.cells_per_user.max()) * epsilon,
        PRINTED: suppress(counts, statistics, epsilon, printed=True)[1],
        CLIP: loss,
        SPARING: suppress(counts, statistics, epsilon, spare=True)[1],
        USERS: _charge(counts, statistics, epsilon, counts.count),
        CLIP_USERS: _charge(counts, statistics, epsilon, np.where(kept, counts.count, 0)),
        BALANCED: cells.balanced(error),
        EQUALISED: cells.equalised(error),
        OPTIMAL: best.value,
        BOUND: best.lower_bound,
    }
    if own:
        found[OWN] = cells.optimal(before).value
    return found, error


def errors(counts: Counts, statistics: str, epsilon: float) -> Found:
    """Errors of the worst cell by method, and their common loss: the paper's for Clip-User."""
    found, loss = suppressions(counts, statistics, epsilon)
    kept, _ = suppress(counts, statistics, epsilon, printed=True)
    cells = Cells(counts, UNITS[statistics])
    cost = _cost(statistics, epsilon, printed=True)
    left = _capped(counts, kept, cost)
    best = cells.optimal_error(loss)
    return {
        PAPER: found[PAPER],
        PRINTED: float(cost(*_sums(counts, left), counts.totals).max()),
        TRUE: float(_cell_errors(counts, statistics, epsilon, left).max()),
        CLIP: found[CLIP],
        # At the same loss of a cell: what it loses in all is more, as users are left in more cells.
        SPARING: found[SPARING],
        BALANCED: cells.balanced(1.0) / loss,
        EQUALISED: cells.equalised(1.0) / loss,
        OPTIMAL: best.value,
        BOUND: best.lower_bound,
    }, loss


def suppressions(counts: Counts, statistics: str, epsilon: float) -> Found:
    """Errors of the worst cell after Clip-User and capping; the loss that the paper charges."""
    found = {PAPER: float(_cell_errors(counts, statistics, epsilon, counts.count).max())}
    charge = {}
    cost = _cost(statistics, epsilon)
    for name in (CLIP, SPARING):
        kept, charge[name] = suppress(counts, statistics, epsilon, spare=name == SPARING)
        left = _capped(counts, kept, cost)
        found[name] = float(_cell_errors(counts, statistics, epsilon, left).max())
    return found, charge[CLIP]


def _capped(counts: Counts, kept: Flags, cost: Callable[..., Floats]) -> NDArray[np.int64]:
    """Records of each membership after suppression and the capping step."""
    cap = caps.after_suppression(counts.cell, counts.count, kept, counts.n_cells, cost)
    return np.where(kept, np.minimum(counts.count, cap[counts.cell]), 0)


def _cell_errors(
    counts: Counts, statistics: str, epsilon: float, left: NDArray[np.int64]
) -> Floats:
    """True errors of the cells with these records of each membership."""
    return _cost(statistics, epsilon)(*_sums(counts, left), counts.totals)


def _charge(counts: Counts, statistics: str, epsilon: float, left: NDArray[np.int64]) -> float:
    """The same noise, charged user by user: max_l sum_g Delta_gl / b_g."""
    heaviest, records = _sums(counts, left)
    lost = np.zeros(len(left))
    for form in STATISTICS[statistics]:
        noise = form.sensitivity(heaviest, records) / (epsilon / len(STATISTICS[statistics]))
        moved = form.sensitivity(left, records[counts.cell])
        # One user alone in a cell with one record: no variance, no noise, no loss.
        lost += np.divide(moved, noise[counts.cell], out=np.zeros(len(left)), where=moved > 0)
    return float(np.bincount(counts.user, lost).max())


def _sums(counts: Counts, left: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Heaviest count and records of each cell."""
    records = np.bincount(counts.cell, left, counts.n_cells).astype(np.int64)
    return largest(counts.cell, left, counts.n_cells), records


def measured(
    answer: Callable[..., Found],
    gamma: float | None,
    statistics: str,
    effort: Effort,
    names: tuple[str, str],
    many: tuple[float, ...] = _SYNTHETIC,
) -> list[Row]:
    """One row a method and loss of a cell: the mean over draws of what an answer finds."""
    every, few = (_ITMS, _QUICK_ITMS) if gamma is None else (many, _QUICK)
    epsilons = every if effort.full else few
    draws = range(DRAWS if effort.full else 1)
    counts = (
        [itms_many(effort.seed)] if gamma is None
        else [synthetic(gamma, effort.seed * DRAWS + draw) for draw in draws]
    )  # fmt: skip
    tasks = [(counts, statistics, epsilon) for counts in counts for epsilon in epsilons]
    # A second process takes as long to start as a few points.
    workers = effort.workers if len(tasks) > _FEW else 1
    points = list(effort.progress(carry_out(partial(_point, answer), tasks, workers), len(tasks)))
    shape = (len(counts), len(epsilons))
    guess = UNITS[statistics].guess
    common = np.array([each for _, each in points]).reshape(shape)
    better = (common >= guess).sum(axis=0)
    rows: list[Row] = []
    for method in points[0][0]:
        found = np.array([of[method] for of, _ in points]).reshape(shape)
        spread = found.std(axis=0, ddof=1) / len(found) ** 0.5 if len(found) > 1 else 0 * found[0]
        rows += [
            {
                "counts": "ITMS-like" if gamma is None else f"gamma {gamma:g}",
                "statistics": statistics,
                "method": method,
                "epsilon_per_cell": epsilon,
                names[0]: round(float(common[:, at].mean()), 6),
                names[1]: round(float(found[:, at].mean()), 6),
                "standard_error": round(float(spread[at]), 6),
                "error_of_guessing": guess,
                "guessing_is_better": int(better[at]) if names[1] == "loss" else 0,
                "draws": len(found),
            }
            for at, epsilon in enumerate(epsilons)
        ]
    return rows


def _point(answer: Callable[..., Found], task: tuple[Counts, str, float]) -> Found:
    return answer(*task)


_LOSS = ("error_allowed", "loss")
_ERROR = ("loss_allowed", "error")


def _total_losses(gamma: float | None, effort: Effort) -> Study:
    answer = partial(losses, own=gamma is None)
    parts = {name: measured(answer, gamma, name, effort, _LOSS) for name in (MEANS, BOTH)}
    both = parts[BOTH]
    rows = [row for part in parts.values() for row in part]
    findings = [
        Finding(
            f"losses of a cell at which {name} loses less than with nothing suppressed{note}",
            "most", f"{better.sum()} of {len(better)}", bool(2 * better.sum() > len(better)),
        )
        for name, note in ((CLIP, ""), (PRINTED, " (erratum 1)"))
        for better in [
            column(both, "loss", method=name) < column(both, "loss", method=PAPER) * (1 - _SLACK)
        ]
    ]  # fmt: skip
    if gamma not in (None, GAMMAS[0]):
        first = measured(suppressions, GAMMAS[0], BOTH, effort, _ERROR)
        ratio = column(both, "loss", method=CLIP) / column(first, "loss_allowed", method=CLIP)
        claim = f"loss of {CLIP}, over that at gamma {GAMMAS[0]}"
        findings.append(spans(claim, ratio, "at most 1", ratio <= 1 + _SLACK))
    for name, part in parts.items():
        findings += _loss_findings(name, part)
    # Where guessing has a smaller error our plan has no loss.
    shown = [
        row for row in rows
        if float(row["loss"]) > _LEAST
        and not (row["method"] in (OPTIMAL, BOUND) and row["guessing_is_better"])
    ]  # fmt: skip
    labels = ("epsilon per cell", "total privacy loss")
    chart = Chart(shown, "epsilon_per_cell", "loss", "method", "statistics", labels, "xy",
                  grey="guessing_is_better")  # fmt: skip
    return Study(rows, [chart], findings)


def _by_method(
    name: str, rows: list[Row], names: tuple[str, str], over: tuple[float, float]
) -> tuple[dict[str, Floats], Finding]:
    """Numbers of each method, and a finding of all of them at epsilon 1 a cell, over these."""
    found = {str(row["method"]): column(rows, names[1], method=row["method"]) for row in rows}
    at = int(np.flatnonzero(np.isclose(column(rows, "epsilon_per_cell", method=PAPER), 1.0))[0])
    common = column(rows, names[0], method=PAPER)[at] / over[0]
    here = "; ".join(f"{method} {each[at] / over[1]:.3g}" for method, each in found.items())
    unit = " (errors over that of guessing)"
    claim = f"{name}, epsilon 1 per cell: {names[1]} at {names[0].replace('_', ' ')}{unit}"
    return found, Finding(claim, "-", f"at {common:.3g}: {here}")


def _loss_findings(name: str, rows: list[Row]) -> list[Finding]:
    loss, at_one = _by_method(name, rows, _LOSS, (UNITS[name].guess, 1.0))
    useful = column(rows, "guessing_is_better", method=PAPER) == 0
    epsilon = column(rows, "epsilon_per_cell", method=PAPER)[useful]
    best = loss[OPTIMAL][useful]
    bound = np.maximum(loss[BOUND][useful], 1e-300)
    found = [
        at_one,
        spans(f"{name}: {CLIP} over {EQUALISED}", loss[CLIP] / loss[EQUALISED]),
        Finding(f"{name}: losses of a cell at which guessing errs more", "-", listed(epsilon)),
    ]
    return found if not useful.any() else [
        *found,
        spans(f"{name}: {CLIP} over {OPTIMAL}, there", loss[CLIP][useful] / best),
        Finding(f"{name}: largest gap of the plan, there", "-", f"{max(best / bound - 1):.2%}"),
    ]  # fmt: skip


def _worst_errors(gamma: float | None, effort: Effort) -> Study:
    parts = {name: measured(errors, gamma, name, effort, _ERROR, _FEWER) for name in (MEANS, BOTH)}
    both = parts[BOTH]
    rows = [row for part in parts.values() for row in part]
    error = {str(row["method"]): column(both, "error", method=row["method"]) for row in both}
    left = error[CLIP] / error[PAPER]
    over = error[TRUE] / error[PRINTED]
    findings = [
        Finding("part of the worst error that Clip-User and the cap leave",
                "hardly below 1" if gamma is None else "below 1", span(left),
                bool(np.mean(left > _ALIKE) > 1 / 2 if gamma is None else (left < 1).any())),
        spans("true error over the one claimed, as printed (erratum 1)", over, "at most 1",
              over <= 1 + _SLACK),
    ]  # fmt: skip
    if gamma not in (None, GAMMAS[0]):
        first = measured(suppressions, GAMMAS[0], BOTH, effort, _ERROR, _FEWER)
        for name, runs in ((SPARING, "all, as its runs spare that cell"), (CLIP, "-")):
            before = column(first, "error", method=PAPER) - column(first, "error", method=name)
            grows = error[PAPER] - error[name] >= before * (1 - _SLACK)
            findings.append(
                Finding(f"losses at which {name}, gains no less than at gamma {GAMMAS[0]}", runs,
                        f"{grows.sum()} of {len(grows)}",
                        bool(grows.all()) if name == SPARING else None)
            )  # fmt: skip
    for name, part in parts.items():
        findings += _error_findings(name, part)
    shown: list[Row] = [
        {**row, "over_guessing": float(row["error"]) / float(row["error_of_guessing"])}
        for row in rows
    ]
    shown += [{"method": "guessing", "over_guessing": 1.0, "epsilon_per_cell": 1.0,
               "statistics": name} for name in parts]  # fmt: skip
    labels = ("epsilon per cell", "worst-case error, over that of guessing")
    chart = Chart(shown, "epsilon_per_cell", "over_guessing", "method", "statistics", labels, "xy")
    return Study(rows, [chart], findings)


def _error_findings(name: str, rows: list[Row]) -> list[Finding]:
    error, at_one = _by_method(name, rows, _ERROR, (1.0, UNITS[name].guess))
    gap = error[OPTIMAL] / np.maximum(error[BOUND], 1e-300) - 1
    return [
        at_one,
        spans(f"{name}: {CLIP}, over {OPTIMAL}", error[CLIP] / error[OPTIMAL]),
        Finding(f"{name}: largest gap of the plan", "-", f"{gap.max():.1%}"),
    ]


def _register() -> None:
    """Figures 1 and 3 to 5 show losses, 2 and 6 to 8 errors."""
    for figure, gamma in enumerate((None, None, *GAMMAS, *GAMMAS), start=1):
        run = _worst_errors
        what = "Worst-case error at equal loss"
        if figure in (1, 3, 4, 5):
            run = _total_losses
            what = "Total loss at equal error"
        of = "the ITMS-like counts" if gamma is None else f"synthetic counts, gamma {gamma:g}"
        source = f"section VI-B, figure {figure}"
        study(f"000-figure-{figure}", f"{what}, {of}", source)(partial(run, gamma))


_register()
