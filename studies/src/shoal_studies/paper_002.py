"""Paper 002: groupings, mechanisms on the ITMS-like cell and on larger ones, the minimax cap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.cells.comparisons.comparison import Choice
from shoal.cells.mechanisms import caps
from shoal.cells.mechanisms.weights import wrap_around
from shoal_studies import data
from shoal_studies.chart import Chart, Row
from shoal_studies.registry import Finding, Study, column, span, spans, study
from shoal_studies.simulate import MECHANISMS, Effort, Setting, against_loss, errors

SCALING = 10
# "Similar", "much better" and "very little difference" of the paper, in numbers of ours.
_ALIKE = 1.1
_MUCH = 1.3
_LITTLE = 2.0
_EPSILONS = (0.5, 0.75, 1.0, 1.5, 2.0)
_GROUPED = {
    "array averaging": "array averaging, median cap",
    "Levy": "Levy",
    "quantile, fixed": "quantile, fixed",
}
_PRINTED = "array averaging, wrap_around as printed"
_OURS = "adaptive (ours)"
_CLIPPING = ("Levy", "quantile, fixed", "quantile, optimised")
_LEAST = 0.001
_MOST = 2.0
_POINTS = 1000


@study("002-figure-1", "Grouping by wrap_around and by best_fit", "section IV-B, figure 1")
def grouping(effort: Effort) -> Study:
    """Array averaging as printed has noise for 2U/K, where the exact sensitivity is U max_l w_l."""
    counts = data.itms()
    cap = caps.median(counts)
    user, _, records, _ = wrap_around(counts, cap)
    stretch = float(np.bincount(user, records).max()) / cap / 2
    lines: dict[str, Choice] = {}
    for name, mechanism in _GROUPED.items():
        method, settings = MECHANISMS[mechanism]
        lines[f"{name}, best_fit"] = method, settings
        lines[f"{name}, wrap_around"] = method, {**settings, "grouping": "wrap_around"}
    epsilons = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
    setting = Setting("ITMS-like, iid", data.one_cell(counts), data.speeds(), data.BOUNDS, epsilons)
    rows = errors(setting, lines, effort)
    printed = {_PRINTED: lines["array averaging, wrap_around"]}
    rows += errors(setting, printed, effort, stretch=stretch)
    error = {name: column(rows, "error", mechanism=name) for name in (*lines, _PRINTED)}
    ratio = {name: error[f"{name}, wrap_around"] / error[f"{name}, best_fit"] for name in _GROUPED}
    over = error[_PRINTED] / error["array averaging, best_fit"]
    alike = bool((np.abs(np.log(ratio["array averaging"])) < np.log(_ALIKE)).all())
    findings = [
        Finding(
            "array averaging, wrap_around over best_fit, exact sensitivity",
            f"similar (here: within {_ALIKE:g})", span(ratio["array averaging"]), alike,
        ),
        spans("the same with the printed sensitivity 2U/K (erratum 7)", over, "similar",
              np.abs(np.log(over)) < np.log(_ALIKE)),
        *(
            spans(f"{name}, wrap_around over best_fit", ratio[name],
                  f"much more (here: {_MUCH:g})", ratio[name] > _MUCH)
            for name in ("Levy", "quantile, fixed")
        ),
    ]  # fmt: skip
    shown: list[Row] = []
    for row in rows:
        name, _, way = str(row["mechanism"]).rpartition(", ")
        shown.append({**row, "mechanism": name, "grouping": way})
    labels = ("epsilon", "mean absolute error, km/h")
    chart = Chart(shown, "epsilon", "error", "grouping", "mechanism", labels, "y")
    return Study(rows, [chart], findings)


def _measured(
    name: str, counts: NDArray[np.int64], array: str, effort: Effort, *, differ: bool = False
) -> tuple[list[Row], dict[str, NDArray[np.float64]]]:
    """Rows and errors by mechanism, ours last, with one way to choose the cap of arrays."""
    names = ("baseline", array, *_CLIPPING, _OURS)
    cell = data.one_cell(counts)
    setting = Setting(name, cell, data.speeds(differ=differ), data.BOUNDS, _EPSILONS)
    rows = errors(setting, {each: MECHANISMS[each] for each in names}, effort)
    return rows, {each: column(rows, "error", mechanism=each) for each in names}


def _at_one(error: dict[str, NDArray[np.float64]]) -> Finding:
    at = _EPSILONS.index(1.0)
    found = ", ".join(f"{name} {numbers[at]:.3f}" for name, numbers in error.items())
    return Finding("errors at epsilon 1, km/h", "-", found)


@study("002-figure-2", "The mechanisms on the ITMS-like cell", "section IV-B, figure 2")
def mechanisms(effort: Effort) -> Study:
    """Values that are iid, and a variant of ours in which users differ."""
    every: list[Row] = []
    findings: list[Finding] = []
    for name, differ in (("iid values", False), ("users differ (our variant)", True)):
        rows, error = _measured(
            name, data.itms(), "array averaging, median cap", effort, differ=differ
        )
        every += rows
        baseline, *papers, ours = error.values()
        gain = baseline / papers
        apart = np.max(papers, axis=0) / np.min(papers, axis=0)
        findings += [
            spans(f"{name}: baseline over those that clip", gain, "much more than 1", gain > 1),
            spans(f"{name}: worst over best of those that clip", apart,
                  f"very little difference (here: below {_LITTLE:g})", apart < _LITTLE),
            spans(f"{name}: adaptive over the best of them", ours / np.min(papers, axis=0)),
            _at_one(error),
        ]  # fmt: skip
    return Study(every, [against_loss(every)], findings)


@study(
    "002-figure-3",
    "Sample scaling: ten times the records of every user",
    "section IV-C, figure 3",
)
def samples(effort: Effort) -> Study:
    """Iid values."""
    rows, error = _measured(
        "sample scaling, iid", SCALING * data.itms(), "array averaging, median cap", effort
    )
    baseline, *papers, ours = error.values()
    levy = error["Levy"]
    others = np.array([error[each] for each in error if each not in ("Levy", _OURS)])
    gain = baseline / papers
    best = levy / others.min(axis=0)
    findings = [
        spans("baseline over those that clip", gain, "much more than 1", gain > 1),
        spans("Levy over the next best", best, "the best", best < 1),
        spans("adaptive over Levy", ours / levy),
        _at_one(error),
    ]  # fmt: skip
    return Study(rows, [against_loss(rows)], findings)


@study("002-figure-4", "User scaling: every user ten times", "section IV-C, figure 4")
def users(effort: Effort) -> Study:
    """Array averaging is at the Levy cap, as in the paper."""
    rows, error = _measured(
        "user scaling, iid", np.repeat(data.itms(), SCALING), "array averaging, Levy cap", effort
    )
    baseline, array, levy, fixed, optimised, ours = error.values()
    first = fixed / np.min([baseline, array, levy, optimised], axis=0)
    second = array / np.min([baseline, levy, optimised], axis=0)
    findings = [
        spans("fixed quantiles over the best of the others", first, "the best", first < 1),
        spans("array averaging over the best of the rest", second, "second", second < 1),
        spans("adaptive over fixed quantiles", ours / fixed),
        _at_one(error),
    ]  # fmt: skip
    return Study(rows, [against_loss(rows)], findings)


@study("002-figure-5", "The minimax cap against the loss", "section V, figure 5")
def minimax_cap(effort: Effort) -> Study:
    """The cap with the least worst-case error: no randomness, the same for every effort."""
    counts = data.itms()
    epsilons = np.geomspace(_LEAST, _MOST, _POINTS)
    rows: list[Row] = []
    for epsilon in epsilons.tolist():
        best = caps.minimax(counts, epsilon)
        worst = float(caps.minimax_error(counts, np.array([best]), epsilon)[0])
        rows.append(
            {
                "epsilon": round(epsilon, 8),
                "cap": best,
                "worst_case_error_over_width": round(worst, 8),
            }
        )
    cap = column(rows, "cap")
    error = column(rows, "worst_case_error_over_width")
    every, start = every_cap(counts)
    useful = epsilons[error < 1 / 2]
    findings = [
        Finding("steps of the staircase, from exact crossings", "-", f"{len(every) - 1}"),
        Finding("the cap in epsilon", "non-decreasing", f"{cap[0]:.0f} to {cap[-1]:.0f}",
                bool((np.diff(cap) >= 0).all())),
        Finding("the largest count is the cap from this epsilon on", "-",
                f"{start[-1]:.3g}" if every[-1] == counts.max() else "none"),
        Finding("the certificate is below that of guessing from this epsilon on", "-",
                f"{useful.min():.3g}" if len(useful) else "none"),
    ]  # fmt: skip
    chart = Chart(
        rows, "epsilon", "cap", labels=("epsilon", "cap, records of a user"), log="x"
    )  # fmt: skip
    return Study(rows, [chart], findings)


def every_cap(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every minimax cap of the axis, and the loss from which on it is one: exact, not on a grid."""
    every = np.unique(counts)
    kept = caps.kept(counts, every)
    base = 1 - kept / counts.sum()
    slope = every / kept
    steeper = slope[:, None] - slope[None]
    apart = base[None] - base[:, None]
    crossing = (apart / np.where(steeper == 0, np.nan, steeper)).ravel()
    ends = np.unique(crossing[(crossing > 1 / _MOST) & (crossing < 1 / _LEAST)])
    ends = np.concatenate([[1 / _MOST], ends, [1 / _LEAST]])[::-1]
    middle = (ends[:-1] + ends[1:]) / 2
    cap = every[(base[:, None] + slope[:, None] * middle).argmin(axis=0)]
    first = np.flatnonzero(np.diff(cap, prepend=0))
    return cap[first], 1 / ends[first]
