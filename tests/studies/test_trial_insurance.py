"""The study of a real experiment: its data, the noise of its releases, and its intervals."""

import os
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import binom, chi2
from shoal_studies import trial_insurance_releases as releases
from shoal_studies import trial_lines as lines
from shoal_studies.registry import column
from shoal_studies.simulate import Effort
from shoal_studies.trial_insurance import insurance
from shoal_studies.trial_insurance_releases import NULL, REAL, Households, Releases, Task

from shoal.errors import MissingPartError
from shoal.theory.randomised_response import with_uniform_prior
from shoal.trials.mechanisms.aggregates import NoisyHistogram, NoisyHorvitzThompson
from shoal.trials.mechanisms.outcomes import UniformPrior

pytestmark = pytest.mark.study

RATE, EPSILON = 1e-9, 0.25
REPETITIONS = 2000 if os.environ.get("SHOAL_FULL") else 160


@pytest.fixture(scope="module")
def both() -> tuple[Households, Households]:
    """The experiment with the real effect and the one with none."""
    return releases.load()


@pytest.fixture(scope="module")
def found(both: tuple[Households, Households]) -> dict[str, Releases]:
    """Releases of the null effect at epsilon 1/4."""
    made = releases.carry(Task(both[1], EPSILON, REPETITIONS, seed=7))
    return {each.mechanism: each for each in made}


def test_the_data_are_those_of_the_package(both: tuple[Households, Households]) -> None:
    """Villages, hamlets and effects as pandas has them."""
    frame = import_module("causaldata.social_insure").load_pandas().data
    for name, home in zip((REAL, NULL), both, strict=True):
        arms = frame.groupby("village")[name].transform("nunique")
        kept = frame[arms > 1]
        means = kept.groupby(["village", name]).takeup_survey.mean().unstack()
        weight = kept.groupby("village").size() / len(kept)
        assert home.plain.value == pytest.approx(((means[1] - means[0]) * weight).sum())
        assert home.units.assignment.n == len(kept)
        assert home.left_out == frame.village.nunique() - kept.village.nunique()
        assert home.hamlets == frame.address.nunique()
        assert home.alike == (frame.groupby("address")[name].nunique() == 1).sum()
    assert both[0].left_out > 0
    assert both[1].left_out == 0


def test_without_the_package_the_study_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An optional part that is missing is named."""
    monkeypatch.setattr(releases, "find_spec", lambda _: None)
    with pytest.raises(MissingPartError, match=r"shoal\[trials\]"):
        releases.load()


def added(home: Households, mechanism: str) -> float:
    """Variance that the mechanism adds in closed form."""
    assignment = home.units.assignment
    weight = assignment.sizes.sum(axis=1) / assignment.n
    if mechanism == lines.UNIFORM:
        lam = UniformPrior(EPSILON).choose(assignment.sizes, releases.SPACE).parameters.lam
        half = np.array([0.5])
        # Around 1/2 all binary outcomes are alike, so that half of each does for all.
        one = float(with_uniform_prior(half, half, releases.SPACE.array, lam)[0])
        return float((weight[:, None] ** 2 / assignment.sizes).sum() * one)
    kind = NoisyHistogram if mechanism == lines.HISTOGRAMS else NoisyHorvitzThompson
    made = kind(EPSILON).prepare(assignment, releases.SPACE)
    return float(weight**2 @ made.aggregate.noise_variance[:, 0])


@pytest.mark.parametrize("mechanism", [lines.UNIFORM, lines.DIFFERENCES, lines.HISTOGRAMS])
def test_releases_err_as_the_closed_forms_say(
    both: tuple[Households, Households], found: dict[str, Releases], mechanism: str
) -> None:
    """Accepts the exact variance, rejects noise of half or twice the scale; false alarms <= 1e-9.

    Half of the degrees of freedom allow for an excess kurtosis of up to 2.
    """
    ratio = found[mechanism].rmse ** 2 / added(both[1], mechanism)
    degrees = REPETITIONS / 2
    low, high = (chi2.ppf(at, degrees) / degrees for at in (RATE / 2, 1 - RATE / 2))
    assert low < ratio < high
    assert not low < 4 * ratio < high
    assert not low < ratio / 4 < high


@pytest.mark.parametrize("mechanism", list(releases.mechanisms(EPSILON)))
def test_intervals_cover_after_shuffling(found: dict[str, Releases], mechanism: str) -> None:
    """Accepts 92% and more for 95%; rejects errors without the mechanism; false alarms <= 1e-9."""
    shuffled = found[mechanism].shuffled
    assert shuffled is not None
    least = binom.ppf(RATE, REPETITIONS, 0.92) / REPETITIONS
    assert found[mechanism].valid >= least
    reach = 1.96 * shuffled.households.plain.finite_population.standard_error
    covered = float((np.abs(shuffled.value) <= reach).mean())
    assert covered < least


def test_floors_pay_for_nothing(found: dict[str, Releases]) -> None:
    """At delta 0 no prior from histograms adds less than the uniform one."""
    uniform = found[lines.UNIFORM].rmse
    # Each error has a relative standard error of about 1/sqrt(2R), their ratio one of 1/sqrt(R).
    slack = 1 - 6.11 / REPETITIONS**0.5
    assert found[lines.FREE].rmse > slack * uniform
    assert found[lines.CLUSTER].rmse > slack * uniform


def test_shuffling_moves_outcomes_within_villages(both: tuple[Households, Households]) -> None:
    """Arms keep their sizes, villages their outcomes."""
    units = both[0].units
    moved = releases._shuffle(units, seed=3)
    village = units.assignment.group // 2
    assert moved.assignment is units.assignment
    assert not np.array_equal(moved.outcomes, units.outcomes)
    before, after = (np.bincount(village, each.outcomes) for each in (units, moved))
    assert np.array_equal(before, after)


def test_the_study_has_a_row_for_each_treatment_loss_and_mechanism() -> None:
    """Villages where an arm has nobody are left out, and both choices take the uniform prior."""
    rows = insurance(Effort(repetitions=6)).rows
    assert len(rows) == 2 * 2 * 5
    assert (column(rows, "villages_left_out", treatment=REAL) == 8).all()
    uniform, free, cluster = (
        column(rows, "rmse", treatment=REAL, mechanism=name)
        for name in (lines.UNIFORM, lines.FREE, lines.CLUSTER)
    )
    assert (np.diff([uniform, free, cluster], axis=1) < 0).all()
