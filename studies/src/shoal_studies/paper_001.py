"""Paper 001, figures 2 and 3: average errors of bounding strategies against the loss."""

from __future__ import annotations

from functools import partial

import numpy as np

from shoal.cells.comparisons.simulation import made_up
from shoal.cells.estimates.draw import exact_numbers
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.planners.planner import plan_means
from shoal.data.value_lattice import Bounds, Lattice
from shoal.privacy.noise import Simulated
from shoal_studies import data
from shoal_studies.chart import Row
from shoal_studies.registry import Finding, Study, column, listed, span, spans, study
from shoal_studies.simulate import MECHANISMS, Effort, Setting, against_loss, errors

EPSILONS = tuple(round(0.1 * step, 1) for step in range(1, 21))
PLAIN = "not clamped, as in the paper"
_PAPERS = ("baseline", "AKMV", "worst-case optimal")
# "Quite similar" in the paper's words, in numbers of ours.
_SIMILAR = 1.25
_SEEDS = 2**16
# Expectations over the noise are in closed form: more repetitions say little more.
_MOST = 1000


def _study(setting: Setting, effort: Effort) -> Study:
    names = (*_PAPERS, "adaptive (ours)")
    rows = errors(setting, {name: MECHANISMS[name] for name in names}, effort)
    plain = _unclamped(setting, effort)
    baseline, akmv, optimal, ours = (column(rows, "error", mechanism=name) for name in names)
    free = [column(plain, "error", mechanism=name) for name in _PAPERS]
    epsilon = np.array(EPSILONS)
    below = np.array(EPSILONS) < 2
    spread = column(rows, "standard_error", mechanism=names[2])
    rises = epsilon[1:][np.diff(optimal) > 3 * spread[1:]]
    alike = akmv / baseline
    worse = free[1] / free[0]
    gain = free[0] / free[2]
    similar = bool((np.abs(np.log(alike)) < np.log(_SIMILAR)).all())
    best = np.minimum.reduce([baseline, akmv, optimal])
    findings = [
        spans("baseline over worst-case optimal bounding below epsilon 2",
              (baseline / optimal)[below], "far more than 1", (baseline > optimal)[below]),
        Finding(
            "at epsilon 2 both are the same mechanism, T being the largest count", "-",
            f"{optimal[-1]:.3g} and {baseline[-1]:.3g}",
        ),
        Finding(
            "losses at which the error of the worst-case optimal bounding rises", "not monotonic",
            listed(rises), len(rises) > 0,
        ),
        Finding("AKMV over baseline", f"similar (here: within {_SIMILAR:g})", span(alike), similar),
        Finding(
            "losses at which AKMV errs more than the baseline", "all",
            f"{(alike > 1).sum()} of {len(alike)}", bool((alike > 1).all()),
        ),
        spans(f"AKMV over baseline, {PLAIN}", worse, "similar",
              np.abs(np.log(worse)) < np.log(_SIMILAR)),
        Finding(
            f"losses at which AKMV errs more than the baseline, {PLAIN}", "all",
            f"{(worse > 1).sum()} of {len(worse)}", bool((worse > 1).all()),
        ),
        spans(f"baseline over worst-case optimal bounding below epsilon 2, {PLAIN}", gain[below],
              "far more than 1", (gain > 1)[below]),
        spans("adaptive over the best of the three", ours / best),
    ]  # fmt: skip
    return Study([*rows, *plain], [against_loss([*rows, *plain])], findings)


def _unclamped(setting: Setting, effort: Effort) -> list[Row]:
    """Errors of estimates that are not moved into the bounds, as the paper states them.

    Releases stay within the public bounds, at no cost: where the noise is as wide as they are,
    that cuts the errors of all mechanisms to much the same. Of Laplace noise of scale b about an
    estimate that is off by d the mean absolute error is |d| + b exp(-|d|/b).
    """
    counts = setting.counts
    lattice = Lattice(Bounds.of(setting.bounds), 20)
    plans = [
        [
            plan_means(counts, setting.bounds, MECHANISMS[name][0], each, MECHANISMS[name][1])
            for each in EPSILONS
        ]
        for name in _PAPERS
    ]
    user, cell = (np.repeat(each, counts.count) for each in (counts.user, counts.cell))
    turns = min(effort.repetitions, _MOST)
    found = np.empty((turns, len(plans), len(EPSILONS)))
    for turn in effort.progress(range(turns), turns):
        private = made_up(
            counts, lattice, setting.values(np.random.default_rng([effort.seed, turn]), user, cell)
        )
        noise = Simulated(effort.seed * _SEEDS + turn)
        for at, row in enumerate(plans):
            for point, plan in enumerate(row):
                numbers = Estimates.of(plan, *exact_numbers(plan, private, noise))
                off = np.abs(numbers.unclamped - private.cell_means()[plan.planned])
                scale = numbers.noise_scale
                found[turn, at, point] = (off + scale * np.exp(-off / scale)).mean()
    spread = found.std(axis=0, ddof=1) / turns**0.5
    plain = Setting(PLAIN, counts, setting.values, setting.bounds, setting.epsilons)
    return [
        row
        for at, name in enumerate(_PAPERS)
        for row in plain.rows(name, found[:, at].mean(axis=0), spread[at], turns)
    ]


for _figure, _title, _name, _counts, _values in (
    (2, "Bounding strategies on a geometric collection", "geometric collection, uniform values",
     data.geometric(), data.uniform),
    (3, "Bounding strategies on an extreme-valued collection",
     "one user with 10 records, 100 with one; projected normal values",
     data.extreme(), data.projected),
):  # fmt: skip
    _setting = Setting(_name, data.one_cell(_counts), _values, data.BOUNDS, EPSILONS)
    _source = f"section IV, figure {_figure}"
    study(f"001-figure-{_figure}", _title, _source)(partial(_study, _setting))
