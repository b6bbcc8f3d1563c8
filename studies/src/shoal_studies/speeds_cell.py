"""Paper 002, figures 2 to 4: the mechanisms on the ITMS-like cell and on larger ones."""

from __future__ import annotations

import numpy as np

from shoal_studies import collections, drawing
from shoal_studies.lines import (
    ADAPTIVE,
    ARRAY_LEVY,
    ARRAY_MEDIAN,
    BASELINE,
    LEVY,
    OPTIMISED,
    QUANTILE,
)
from shoal_studies.measure import Curve, Effort, Setting, measure
from shoal_studies.study import Outcome, Study, behind, rows_of, span, verdict
from shoal_studies.values import BOUNDS, speeds

EPSILONS = (0.5, 0.75, 1.0, 1.5, 2.0)
SCALING = 10
# "Very little difference" in the paper's words, in numbers of ours.
_LITTLE = 2.0


def _itms(effort: Effort) -> Outcome:
    """Values that are iid, and a variant of ours in which users differ."""
    drawing.check()
    cell = collections.one_cell(collections.itms())
    lines = (BASELINE, ARRAY_MEDIAN, LEVY, QUANTILE, OPTIMISED, ADAPTIVE)
    found = {
        name: measure(Setting(cell, speeds(differ=differ), BOUNDS, EPSILONS), lines, effort)
        for name, differ in (("iid values", False), ("users differ (our variant)", True))
    }
    figure = drawing.errors("Paper 002, figure 2: the ITMS-like cell", found)
    first, second = found.values()
    reading = f"{_middle(first, 'With iid values')} {_middle(second, 'Where users differ')}"
    about = (
        "The paper's values are the original speeds, neither iid nor public; ours are normal with "
        "their mean and variance, and the second panel puts a standard deviation of 6 km/h of it "
        "between users."
    )
    return Outcome(rows_of(found), figure, f"{reading} {about} {behind([*first, *second])}")


def _middle(curves: list[Curve], start: str) -> str:
    baseline, *papers, ours = curves
    gain = np.concatenate([baseline.over(each) for each in papers])
    errors = np.array([each.error for each in papers])
    apart = errors.max(axis=0) / errors.min(axis=0)
    holds = bool((gain > 1).all() and (apart < _LITTLE).all())
    return (
        f"{start}, the baseline has {span(gain, 1)} times the error of the four that clip, and the "
        f"worst of these {span(apart)} times as much as the best: {verdict(holds)}. "
        f"At epsilon 1: {_at_one(curves)}. The adaptive mean errs "
        f"{span(ours.error / errors.min(axis=0))} times as much as the best of them."
    )


def _at_one(curves: list[Curve]) -> str:
    return ", ".join(f"{each.line.label} {each.at(1.0):.3f}" for each in curves)


def _samples(effort: Effort) -> Outcome:
    """Every user with ten times the records."""
    drawing.check()
    cell = collections.one_cell(SCALING * collections.itms())
    lines = (BASELINE, ARRAY_MEDIAN, LEVY, QUANTILE, OPTIMISED, ADAPTIVE)
    curves = measure(Setting(cell, speeds(), BOUNDS, EPSILONS), lines, effort)
    found = {"sample scaling, iid": curves}
    figure = drawing.errors("Paper 002, figure 3: ten times the records of every user", found)
    baseline, array, levy, fixed, optimised, ours = curves
    others = np.array([each.error for each in (baseline, array, fixed, optimised)])
    holds = bool((levy.error < others).all())
    clipping = np.concatenate([baseline.over(each) for each in (array, levy, fixed, optimised)])
    reading = (
        f"The baseline has {span(clipping, 1)} times the error of the algorithms that clip, "
        f"{verdict(bool((clipping > 1).all()))}. Levy errs "
        f"{span(levy.error / others.min(axis=0))} times as much as the next best of the paper's "
        f"algorithms: {'the best of them' if holds else 'not always the best of them'}, "
        f"{verdict(holds)}. At epsilon 1: {_at_one(curves)}. The adaptive mean errs "
        f"{span(ours.over(levy))} times as much as Levy. {behind(curves)}"
    )
    return Outcome(rows_of(found), figure, reading)


def _users(effort: Effort) -> Outcome:
    """Every user ten times; array averaging at the Levy cap, as in the paper."""
    drawing.check()
    cell = collections.one_cell(np.repeat(collections.itms(), SCALING))
    lines = (BASELINE, ARRAY_LEVY, LEVY, QUANTILE, OPTIMISED, ADAPTIVE)
    curves = measure(Setting(cell, speeds(), BOUNDS, EPSILONS), lines, effort)
    found = {"user scaling, iid": curves}
    figure = drawing.errors("Paper 002, figure 4: every user ten times", found)
    baseline, array, levy, fixed, optimised, ours = curves
    first = fixed.error / np.array([each.error for each in (baseline, array, levy, optimised)])
    second = array.error / np.array([each.error for each in (baseline, levy, optimised)])
    reading = (
        f"Fixed quantiles err {span(first.max(axis=0))} times as much as the next best of the "
        f"paper's algorithms, so they outperform all of them: {verdict(bool((first < 1).all()))}. "
        f"Array averaging at the Levy cap errs {span(second.max(axis=0))} times as much as the "
        f"best of the others, so it is second: {verdict(bool((second < 1).all()))}. "
        f"At epsilon 1: {_at_one(curves)}. The adaptive mean errs {span(ours.over(fixed))} times "
        f"as much as fixed quantiles. {behind(curves)}"
    )
    return Outcome(rows_of(found), figure, reading)


FIGURE_2 = Study(
    "002-figure-2",
    "The mechanisms on the ITMS-like cell",
    "paper 002, section IV-B, figure 2",
    _itms,
)
FIGURE_3 = Study(
    "002-figure-3",
    "Sample scaling: ten times the records of every user",
    "paper 002, section IV-C, figure 3",
    _samples,
)
FIGURE_4 = Study(
    "002-figure-4",
    "User scaling: every user ten times",
    "paper 002, section IV-C, figure 4",
    _users,
)
