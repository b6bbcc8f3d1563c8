"""Plans at the error of paper 000: bounds against other formulas, and the required figures."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_studies import composition, flights_variance
from shoal_studies.composition import (
    BOTH,
    BOUND,
    CLIP,
    CLIP_USERS,
    EQUALISED,
    MEANS,
    OPTIMAL,
    PAPER,
    PRINTED,
    SPARING,
    TRUE,
    UNITS,
    USERS,
    Case,
)
from shoal_studies.measure import QUICK, Effort
from shoal_studies.occupancies import itms_many, synthetic
from shoal_studies.paper_error import Cells, Units, Weighed
from shoal_studies.registry import find
from shoal_studies.study import write
from shoal_studies.values import WIDTH

from shoal.cells.cell_statistics import cell_errors
from shoal.data.occupancy import Counts
from shoal.theory import variance
from tests.support import worst_case_errors

pytestmark = pytest.mark.study

SMALL = Counts.from_counts(
    [0, 0, 1, 1, 2, 2, 3, 4, 4], [0, 1, 0, 1, 0, 1, 0, 1, 2], [9, 4, 3, 5, 2, 2, 6, 7, 3]
)
QUICKLY = Effort(QUICK)


def case(gamma: float | None, statistics: str) -> Case:
    """One draw at losses of one cell that a study has."""
    return Case(gamma, statistics, (1.0, 3.0), 1, 0)


@pytest.mark.parametrize(("gamma", "bar"), [(3, 0.45), (9, 0.17)])
def test_means_at_equal_error(gamma: float, bar: float) -> None:
    """One draw, epsilon 1 a cell: at most 0.45 and 0.17, where the paper charges 12."""
    found, _ = composition.losses_of(synthetic(gamma, 0), case(gamma, MEANS), 1.0)
    assert found[PAPER] == 12
    assert found[CLIP] in (5, 6)
    assert found[CLIP] == found[PRINTED]
    assert bar / 2 < found[OPTIMAL] <= bar
    assert found[BOUND] <= found[OPTIMAL] <= 1.01 * found[BOUND]


@pytest.mark.parametrize("gamma", [3, 6, 9])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_means_and_variances_at_equal_error(gamma: float, epsilon: float) -> None:
    """At least five times below Clip-User, also where guessing errs more than is allowed."""
    found, error = composition.losses_of(synthetic(gamma, 0), case(gamma, BOTH), epsilon)
    assert 5 * found[EQUALISED] < found[CLIP]
    assert 5 * found[OPTIMAL] < found[CLIP] <= found[PRINTED] <= found[PAPER]
    assert found[BOUND] <= found[OPTIMAL] <= found[EQUALISED]
    uninformative = error >= UNITS[BOTH].guess
    assert (found[OPTIMAL] == 0) == uninformative
    assert (found[BOUND] > 0) == (not uninformative)


@pytest.mark.parametrize("statistics", [MEANS, BOTH])
def test_with_nothing_suppressed_the_errors_are_the_papers(statistics: str) -> None:
    """Sum of the noise of the statistics; charged by user, below K epsilon.

    Source: docs/theory/clip-user.md.
    """
    occupancy = itms_many()
    heaviest = np.zeros(occupancy.n_cells, dtype=np.int64)
    np.maximum.at(heaviest, occupancy.cell, occupancy.count)
    forms, ranges = composition.STATISTICS[statistics], composition._RANGES[statistics]
    errors = cell_errors(forms, 1.0, ranges)(heaviest, occupancy.totals, occupancy.totals)
    found, allowed = composition.losses_of(occupancy, case(None, statistics), 1.0)
    assert allowed == pytest.approx(errors.max(), rel=1e-12)
    assert found[PAPER] == 11
    assert found[EQUALISED] < found[USERS] < found[PAPER]
    assert found[CLIP_USERS] <= found[CLIP]
    # The heaviest user of a cell alone loses epsilon there.
    assert found[USERS] >= 1


def test_charging_each_user_by_hand() -> None:
    """Users 0 and 1 in cells of 10 and 4 records; 1 in 5 and 3 in 4 of what noise is for."""
    occupancy = Counts.from_counts([0, 1, 2, 0, 1], [0, 0, 0, 1, 1], [4, 1, 5, 1, 3])
    found, error = composition.losses_of(occupancy, case(3, MEANS), 1.0)
    # User 0: 4/5 + 1/3, user 1: 1/5 + 3/3, user 2: 1.
    assert found[USERS] == pytest.approx(1.2, rel=1e-12)
    assert error == pytest.approx(0.75 * WIDTH, rel=1e-12)
    assert found[EQUALISED] == pytest.approx(max(0.4 + 0.25, 0.1 + 0.75) / 0.75, rel=1e-9)
    assert found[OPTIMAL] == 0


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_bias_between_chords_and_tangents(missing: float, at: float) -> None:
    """That of the theory; concave, so that tangents are above and chords below."""
    units, one = Units(WIDTH, WIDTH**2), np.array([missing])
    bias = float(units.bias(one)[0])
    theory = WIDTH * missing / 2 + WIDTH**2 / 4 * variance.mass_bias(one, one)[0]
    assert bias == pytest.approx(theory, rel=1e-9, abs=1e-9)
    place = np.array([at])
    tangent = units.bias(place) + units.slope(place) * (one - place)
    assert bias <= tangent[0] + 1e-9
    if missing <= at:
        assert bias >= units.chord(place)[0] * missing - 1e-9
    most = float(units.most_missing(np.array([bias]))[0])
    assert units.bias(np.array([most]))[0] <= bias + 1e-9
    assert most >= missing - 1e-6


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
        duals = rng.random(SMALL.n_users)
        least = min(least, Weighed(cells, share, duals).loss(error))
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
    """docs/theory/limits.md#means; the search stops within a hundredth."""
    counts = np.array([40, 17, 9, 9, 5, 3, 2, 1, 1, 1])
    users = np.arange(len(counts))
    cells = Cells(Counts.from_counts(users, np.zeros_like(users), counts), Units(1.0, 0.0))
    found = cells.optimal_error(epsilon)
    exact = worst_case_errors.error(counts, epsilon)
    assert exact * (1 - 1e-6) <= found.value <= exact * 1.012
    assert found.lower_bound <= exact * (1 + 1e-6)
    assert found.lower_bound >= exact * 0.985


def test_error_and_loss_are_inverse() -> None:
    """The loss at the least error for a loss is that loss, within the search's hundredth."""
    cells = Cells(synthetic(3, 1), UNITS[MEANS])
    error = cells.optimal_error(1.0)
    assert cells.optimal(cells.alike(error.value)).value <= 1.0 + 1e-6
    assert cells.optimal(cells.alike(error.lower_bound)).value >= 1.0 - 1e-3


def test_the_printed_bias_is_no_bound() -> None:
    """Erratum 1: a quarter for one record of a hundred, and too little for most of them."""
    dropped, totals = np.array([0, 1, 49, 51, 90]), np.full(5, 100)
    printed = composition.AS_PRINTED.bias(dropped, totals) / 4
    assert printed == pytest.approx([0, 0.25, 0.25, 0.51 * 0.49, 0.09])
    true = variance.bias(dropped, totals)
    assert (printed[1:3] > true[1:3]).all()
    assert (printed[3:] < true[3:]).all()
    assert composition.AS_PRINTED.bias(np.array([1]), np.array([9])) == pytest.approx(80 / 81)
    found, _ = composition.errors_of(synthetic(3, 0), case(3, BOTH), 1.0)
    assert found[TRUE] > 5 * found[PRINTED]
    assert found[TRUE] > found[CLIP]


@pytest.mark.parametrize("statistics", [MEANS, BOTH])
def test_errors_at_equal_loss(statistics: str) -> None:
    """Ours are below those of the paper's algorithm, and above what is proved."""
    found, loss = composition.errors_of(synthetic(6, 0), case(6, statistics), 1.0)
    assert loss == (5 if statistics == MEANS else 4)
    assert 0 < found[BOUND] <= found[OPTIMAL] <= found[EQUALISED]
    assert 3 * found[EQUALISED] < found[CLIP] <= found[PAPER]


def test_the_number_of_processes_changes_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes find what one does; draws are averaged."""
    monkeypatch.setattr(composition, "_FEW", 1)
    monkeypatch.setattr(composition, "_KEPT", {})
    two = Case(None, MEANS, (0.5, 3.0), 1, 1)
    made = composition.suppressions(two, Effort(QUICK, 1, 2))
    monkeypatch.setattr(composition, "_KEPT", {})
    again = composition.suppressions(two, Effort(QUICK, 1, 1))
    assert made.allowed.tolist() == again.allowed.tolist()
    assert made.spread(CLIP).tolist() == [0, 0]
    several = composition.suppressions(Case(3, MEANS, (1.0,), 2, 0), QUICKLY)
    first, second = several.of[PAPER][:, 0]
    assert several.mean(PAPER)[0] == pytest.approx((first + second) / 2)
    assert several.spread(PAPER)[0] == pytest.approx(abs(first - second) / 2)


@pytest.mark.parametrize("name", ["000-figure-1", "000-figure-3"])
def test_a_study_and_its_reading(tmp_path: Path, name: str) -> None:
    """The table has every method; the reading's figures come from it."""
    [study] = find(name)
    outcome = study.run(QUICKLY)
    assert str(outcome.reading).count("the paper charges") == 2
    assert "unlike the paper" not in outcome.reading
    table, picture, _ = write(study, outcome, tmp_path)
    assert picture.stat().st_size > 20_000
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    of = {
        (row["statistics"], row["method"]): float(row["loss"])
        for row in rows
        if row["epsilon_per_cell"] == "1.0"
    }
    for statistics in (MEANS, BOTH):
        assert f"corrected {of[statistics, CLIP]:.3g} " in outcome.reading
        assert f"(balanced {of[statistics, composition.BALANCED]:.3g})" in outcome.reading
        assert of[statistics, OPTIMAL] <= of[statistics, EQUALISED] <= of[statistics, PAPER]


def test_variances_of_the_flights() -> None:
    """Within their range, truth as numpy has it, errors as the certificate says.

    The mean of 20 draws of Laplace noise is 4 scales away with a chance below 1e-19.
    """
    outcome = flights_variance.STUDY.run(QUICKLY)
    assert "not private" in outcome.reading
    low, high = flights_variance.BOUNDS
    ratio = []
    for row in outcome.rows:
        assert 0 <= float(row["simulated_variance"]) <= (high - low) ** 2 / 4
        assert float(row["low"]) <= float(row["simulated_variance"]) <= float(row["high"])
        assert 0 < float(row["true_variance"]) < 2000
        ratio.append(float(row["mean_error"]) / float(row["certificate"]))
    assert max(ratio) < 4
    # Wide noise is cut by the range, narrow noise is not.
    assert np.median(ratio[len(ratio) // 2 :]) > 0.3
    assert np.mean([float(row["covered"]) for row in outcome.rows]) > 0.9


def test_sparing_the_best_cell_gains_more_the_larger_gamma_is() -> None:
    """Paper 000, figures 6 to 8, as its runs are: at all four losses, means and variances."""
    gains = []
    for gamma in (3, 6, 9):
        found = composition.suppressions(
            Case(gamma, BOTH, (0.1, 0.3, 1.0, 3.0), 3, 0), Effort(QUICK)
        )
        gains.append(found.mean(PAPER) - found.mean(SPARING))
        assert (found.of[SPARING] <= found.of[PAPER] * (1 + 1e-9)).all()
    assert (np.diff(gains, axis=0) >= -1e-9).all()
    assert (gains[2] > gains[0]).any()


@pytest.mark.full
@pytest.mark.parametrize("number", [1, 3, 6])
def test_quick_figures_show_the_ends_of_the_papers_axis(number: int) -> None:
    """Losses of a cell from 0.1 to 1, or to 2 of the ITMS-like occupancy."""
    [study] = find(f"000-figure-{number}")
    rows = study.run(QUICKLY).rows
    shown = {row["epsilon_per_cell"] for row in rows}
    assert {0.1, 2.0 if number == 1 else 1.0} <= shown
