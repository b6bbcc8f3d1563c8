"""Plans at the error of paper 000: bounds against other formulas, and the required figures."""

from functools import cache

import numpy as np
import pytest
from shoal_studies import paper_000
from shoal_studies.data import WIDTH, itms_many, synthetic
from shoal_studies.paper_000 import (
    BOTH,
    BOUND,
    CLIP,
    CLIP_USERS,
    EQUALISED,
    MEANS,
    OPTIMAL,
    PAPER,
    PRINTED,
    TRUE,
    UNITS,
    USERS,
)
from shoal_studies.paper_000_plans import Cells, Units, Weighed
from shoal_studies.simulate import QUICK, Effort

from shoal.cells.mechanisms.cell_statistics import cell_errors
from shoal.data.counts import Counts
from shoal.theory import variance
from tests.support import worst_case_errors

SMALL = Counts.from_counts(
    [0, 0, 1, 1, 2, 2, 3, 4, 4], [0, 1, 0, 1, 0, 1, 0, 1, 2], [9, 4, 3, 5, 2, 2, 6, 7, 3]
)


errors = cache(lambda statistics: paper_000.errors(synthetic(6, 0), statistics, 1.0))


@pytest.mark.parametrize(("gamma", "bar"), [(3, 0.45), (9, 0.17)])
def test_means_at_equal_error(gamma: float, bar: float) -> None:
    """One draw, epsilon 1 a cell: at most 0.45 and 0.17, where the paper charges 12."""
    found, _ = paper_000.losses(synthetic(gamma, 0), MEANS, 1.0)
    assert found[PAPER] == 12
    assert found[CLIP] in (5, 6)
    assert found[CLIP] == found[PRINTED]
    assert bar / 2 < found[OPTIMAL] <= bar
    assert found[BOUND] <= found[OPTIMAL] <= 1.01 * found[BOUND]


@pytest.mark.parametrize(("gamma", "epsilon"), [(3, 1.0), (6, 1.0), (9, 3.0)])
def test_means_and_variances_at_equal_error(gamma: float, epsilon: float) -> None:
    """At least five times below Clip-User, also where guessing errs more than is allowed."""
    found, error = paper_000.losses(synthetic(gamma, 0), BOTH, epsilon)
    assert 5 * found[EQUALISED] < found[CLIP]
    assert 5 * found[OPTIMAL] < found[CLIP] <= found[PRINTED] <= found[PAPER]
    assert found[BOUND] <= found[OPTIMAL] <= found[EQUALISED]
    assert (found[OPTIMAL] == 0) == (error >= UNITS[BOTH].guess) == (found[BOUND] == 0)


@pytest.mark.parametrize("statistics", [MEANS, BOTH])
def test_with_nothing_suppressed_the_errors_are_the_papers(statistics: str) -> None:
    """Sum of the noise of the statistics; charged by user, below K epsilon."""
    counts = itms_many()
    heaviest = np.zeros(counts.n_cells, dtype=np.int64)
    np.maximum.at(heaviest, counts.cell, counts.count)
    forms, ranges = paper_000.STATISTICS[statistics], paper_000.RANGES[statistics]
    errors = cell_errors(forms, 1.0, ranges)(heaviest, counts.totals, counts.totals)
    found, allowed = paper_000.losses(counts, statistics, 1.0)
    assert allowed == pytest.approx(errors.max(), rel=1e-12)
    assert found[PAPER] == 11
    # The heaviest user of a cell alone loses epsilon there.
    assert 1 <= found[USERS] < found[PAPER]
    assert found[EQUALISED] < found[USERS]
    assert found[CLIP_USERS] <= found[CLIP]


def test_charging_each_user_by_hand() -> None:
    """Users 0 and 1 in cells of 10 and 4 records; 1 in 5 and 3 in 4 of what noise is for."""
    counts = Counts.from_counts([0, 1, 2, 0, 1], [0, 0, 0, 1, 1], [4, 1, 5, 1, 3])
    found, error = paper_000.losses(counts, MEANS, 1.0)
    # User 0: 4/5 + 1/3, user 1: 1/5 + 3/3, user 2: 1.
    assert found[USERS] == pytest.approx(1.2, rel=1e-12)
    assert error == pytest.approx(0.75 * WIDTH, rel=1e-12)
    assert found[EQUALISED] == pytest.approx(max(0.4 + 0.25, 0.1 + 0.75) / 0.75, rel=1e-9)
    assert found[OPTIMAL] == 0


@pytest.mark.parametrize("kappa", [1.0, 2.5, 4.0])
@pytest.mark.parametrize("units", [Units(65.0, 65.0**2), Units(1.0, 4.0), Units(1.0, 0.01)])
def test_no_split_of_the_noise_costs_less(units: Units, kappa: float) -> None:
    """Against all splits on a grid, released directly and jointly."""
    first = np.linspace(1e-4, 1 - 1e-4, 20_001)
    direct = units.mean / first + kappa / 4 * units.variance / (1 - first)
    together = variance.joint_loss(first / units.mean, (1 - first) / units.variance)
    # The joint variance also errs by the noise of the mean.
    noise = 1 + first / units.mean * units.variance
    cost = float(units.least_cost(np.array([kappa]))[0])
    best = min(direct.min(), (together * noise).min())
    assert best * 0.999 < cost <= best * (1 + 1e-5)


@pytest.mark.parametrize("statistics", [MEANS, BOTH])
def test_no_weights_cost_less_than_the_bound(statistics: str) -> None:
    """Random weights and splits of the noise, by formulas of their own."""
    rng, cells = np.random.default_rng(4), Cells(SMALL, UNITS[statistics])
    error = cells.alike(0.4 * cells.units.guess)
    best = cells.optimal(error)
    assert 0 < best.lower_bound <= best.value
    least = np.inf
    for _ in range(3000):
        share = cells.share * rng.random(len(cells.share)) ** rng.choice([0.1, 0.5, 1])
        least = min(least, Weighed(cells, share, rng.random(SMALL.n_users)).loss(error))
    assert best.lower_bound <= least
    assert best.value <= least * 1.001


def test_losses_of_weights_by_hand() -> None:
    """Noise that fits the room left by the bias, and every user's loss, one cell at a time."""
    units = UNITS[BOTH]
    cells = Cells(SMALL, units)
    weight = cells.share * np.linspace(0.7, 1.0, len(cells.share))
    plan = Weighed(cells, weight, np.ones(SMALL.n_users))
    error = cells.alike(0.7 * units.guess)
    spent = np.zeros(SMALL.n_users)
    for cell in range(SMALL.n_cells):
        here = np.flatnonzero(SMALL.cell == cell)
        kept = weight[here].sum()
        missing = 1 - kept
        assert missing < 0.5
        bias = WIDTH * missing / 2 + WIDTH**2 * missing * (1 - missing) / 2
        first = plan.part[cell] * (error[cell] - bias) / WIDTH
        second = (1 - plan.part[cell]) * (error[cell] - bias) / WIDTH**2
        moved = variance.mass_sensitivity(weight[here], np.full(len(here), kept)) / 4
        spent[SMALL.user[here]] += weight[here] / first + moved / second
    assert plan.loss(error) == pytest.approx(spent.max(), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_one_cell_errs_as_the_closed_form(epsilon: float) -> None:
    """docs/theory/cells.md#limits-of-means; the search stops within a hundredth."""
    counts = np.array([40, 17, 9, 9, 5, 3, 2, 1, 1, 1])
    users = np.arange(len(counts))
    cells = Cells(Counts.from_counts(users, np.zeros_like(users), counts), Units(1.0, 0.0))
    found = cells.optimal_error(epsilon)
    exact = worst_case_errors.error(counts, epsilon)
    assert exact * (1 - 1e-6) <= found.value <= exact * 1.012
    assert exact * 0.985 <= found.lower_bound <= exact * (1 + 1e-6)


def test_error_and_loss_are_inverse() -> None:
    """The loss at the least error for a loss is that loss, within the search's hundredth."""
    cells = Cells(synthetic(3, 1), UNITS[MEANS])
    error = cells.optimal_error(1.0)
    assert cells.optimal(cells.alike(error.value)).value <= 1.0 + 1e-6
    assert cells.optimal(cells.alike(error.lower_bound)).value >= 1.0 - 1e-3


def test_the_printed_bias_is_no_bound() -> None:
    """Erratum 1: a quarter for one record of a hundred, and too little for most of them."""
    dropped, totals = np.array([0, 1, 49, 51, 90]), np.full(5, 100)
    printed = paper_000.AS_PRINTED.bias(dropped, totals) / 4
    assert printed == pytest.approx([0, 0.25, 0.25, 0.51 * 0.49, 0.09])
    true = variance.bias(dropped, totals)
    assert (printed[1:3] > true[1:3]).all()
    assert (printed[3:] < true[3:]).all()
    assert paper_000.AS_PRINTED.bias(np.array([1]), np.array([9])) == pytest.approx(80 / 81)
    found, _ = errors(BOTH)
    assert found[TRUE] > max(5 * found[PRINTED], found[CLIP])


@pytest.mark.parametrize(("statistics", "loss"), [(MEANS, 5), (BOTH, 4)])
def test_errors_at_equal_loss(statistics: str, loss: float) -> None:
    """Ours are below those of the paper's algorithm, and above what is proved."""
    found, common = errors(statistics)
    assert common == loss
    assert 0 < found[BOUND] <= found[OPTIMAL] <= found[EQUALISED]
    assert 3 * found[EQUALISED] < found[CLIP] <= found[PAPER]


def test_the_number_of_processes_changes_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes find what one does; draws are averaged."""
    monkeypatch.setattr(paper_000, "_FEW", 1)
    monkeypatch.setattr(paper_000, "DRAWS", 2)
    names, two = ("loss_allowed", "error"), (0.5, 3.0)
    rows = [
        paper_000.measured(
            paper_000.suppressions, 3, MEANS, Effort(workers=workers), names, two
        )
        for workers in (1, 2)
    ]  # fmt: skip
    assert rows[0] == rows[1]
    draws = [paper_000.suppressions(synthetic(3, seed), MEANS, 0.5)[0][PAPER] for seed in (0, 1)]
    first = rows[0][0]
    assert first["error"] == pytest.approx(np.mean(draws), abs=1e-6)
    assert first["standard_error"] == pytest.approx(abs(draws[0] - draws[1]) / 2, abs=1e-6)
    assert first["draws"] == 2
    assert len(paper_000.measured(paper_000.suppressions, 3, MEANS, Effort(QUICK), names)) == 9
