"""Studies of experiments: the simulation is the mechanism, and the readings are what was found."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shoal_studies import trial_lines as lines
from shoal_studies.bench_trials import trials
from shoal_studies.registry import column
from shoal_studies.simulate import QUICK, Effort
from shoal_studies.trial_bounds import figure_5
from shoal_studies.trial_distributions import figure_4
from shoal_studies.trial_measure import DELTA, Point, agreement, measure
from shoal_studies.trial_setting import Communities, Mixture, Population, features
from shoal_studies.trial_simulation import (
    Draws,
    NoisyDifferences,
    NoisyHistograms,
    Randomised,
    assign,
)

from shoal.privacy.budget import Budget
from shoal.privacy.noise import Simulated
from shoal.theory.randomised_response import given_prior
from shoal.trials import response
from shoal.trials.parameters import Parameters, calibrate

pytestmark = pytest.mark.study

# Two-sided normal deviation of probability 1e-9.
FAR = 6.11
REALISATIONS = 4000
SMALL = Population(
    np.arange(4.0), np.array([[10, 12, 18, 0], [30, 20, 10, 0]], dtype=np.int64), shift=1
)


def parameters(levels: int = 4, lam: float = 0.5, sigma: float = 4.0) -> Parameters:
    """Cluster-DP on four levels."""
    return lines.replacing(levels, lam, floor=0.05, sigma=sigma)


def real(given: Parameters, *, pooled: bool, seed: int) -> np.ndarray:
    """Estimates of the real mechanism, unit by unit, in thousands of assignments."""
    random = np.random.default_rng(seed)
    levels = SMALL.levels
    codes, group = [], []
    for cluster, row in enumerate(SMALL.control):
        units = np.repeat(np.arange(len(levels)), row)
        order = random.random((REALISATIONS, len(units))).argsort(axis=1).argsort(axis=1)
        arm = (order < SMALL.sizes[cluster, 1]).astype(np.int64)
        codes.append((units + arm).ravel())
        group.append(((np.arange(REALISATIONS) * 2 + cluster)[:, None] * 2 + arm).ravel())
    outcome, place = np.concatenate(codes), np.concatenate(group)
    sizes = np.tile(SMALL.sizes.ravel(), REALISATIONS)
    histogram = place // 4 * 2 + place % 2 if pooled else place
    groups = REALISATIONS * (2 if pooled else 4)
    behind = np.tile(SMALL.sizes.sum(axis=0), REALISATIONS) if pooled else sizes
    noise = Simulated(seed)
    steps = response.tabulate(outcome, histogram, groups, len(levels)) * given.weight
    noisy = np.array(noise.add_laplace(steps.ravel().tolist(), given.lattice_bits))
    prior = response.prior_of(noisy.reshape(steps.shape), behind, given)
    said = response.respond(outcome, histogram, prior, given, noise.bits(len(outcome), 1))
    omega = response.debiased(levels, prior, given)[histogram, said]
    mean = np.bincount(place, omega) / sizes
    return Draws(SMALL, np.empty(0, dtype=np.int64)).estimate(mean.reshape(-1, 2, 2))


def apart(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Distance of means and of variances, in standard errors."""
    mean = (one.mean() - other.mean()) / np.hypot(
        one.std() / len(one) ** 0.5, other.std() / len(other) ** 0.5
    )
    squares = [(each - each.mean()) ** 2 for each in (one, other)]
    error = np.hypot(*(each.std() / len(each) ** 0.5 for each in squares))
    return float(mean), float((squares[0].mean() - squares[1].mean()) / error)


@pytest.mark.parametrize("pooled", [False, True])
def test_simulation_has_mean_and_variance_of_the_real_mechanism(pooled: bool) -> None:
    """Means and variances agree (false alarms 2e-9 each); other parameters are told apart."""
    random = np.random.default_rng(5)
    draws = assign(SMALL, REALISATIONS, random)
    simulated, added = Randomised(parameters(), pooled=pooled).draw(draws, random)
    truth = real(parameters(), pooled=pooled, seed=7)
    assert max(map(abs, apart(simulated, truth))) < FAR
    exact = draws.variance + added.mean()
    squares = (truth - truth.mean()) ** 2
    assert abs(squares.mean() - exact) < FAR * squares.std() / REALISATIONS**0.5
    for wrong in (parameters(lam=0.65), parameters(lam=0.35)):
        other, _ = Randomised(wrong, pooled=pooled).draw(draws, random)
        assert abs(apart(other, truth)[1]) > FAR


def test_the_prior_matters_in_the_same_way() -> None:
    """Exact conditional variances with little and much noise differ as the real ones do."""
    random = np.random.default_rng(6)
    draws = assign(SMALL, REALISATIONS, random)
    for sigma in (0.5, 40.0):
        _, added = Randomised(parameters(lam=0.8, sigma=sigma)).draw(draws, random)
        squares = (real(parameters(lam=0.8, sigma=sigma), pooled=False, seed=8) - 1) ** 2
        error = squares.std() / REALISATIONS**0.5
        assert abs(squares.mean() - draws.variance - added.mean()) < FAR * error


def test_rounding_to_few_levels_is_unbiased_with_the_stated_variance() -> None:
    """Two of four levels: mean 1, and the exact variance, at false-alarm rates of 1e-9."""
    two = calibrate((0, 3), epsilon=Fraction(2), delta=Fraction(0))
    random = np.random.default_rng(9)
    draws = assign(SMALL, 20_000, random)
    estimate, added = Randomised(two).draw(draws, random)
    squares = (estimate - estimate.mean()) ** 2
    assert abs(estimate.mean() - 1) < FAR * estimate.std() / len(estimate) ** 0.5
    exact = draws.variance + added.mean()
    error = squares.std() / len(squares) ** 0.5
    assert abs(squares.mean() - exact) < FAR * error
    assert abs(squares.mean() - 1.15 * exact) > FAR * error


def test_assignment_variance_by_enumeration() -> None:
    """All 20 x 6 assignments of two small clusters have the closed form's variance."""
    control = np.array([[3, 1, 2, 0], [1, 1, 2, 0]], dtype=np.int64)
    population = Population(np.array([0.0, 1.0, 2.0, 3.0]), control, shift=1)
    means = []
    for row, size in zip(control, population.sizes, strict=True):
        units = np.repeat(np.arange(4), row)
        parts = [list(each) for each in itertools.combinations(range(len(units)), size[1])]
        rest = [[at for at in range(len(units)) if at not in part] for part in parts]
        means.append(
            [units[a].mean() + 1 - units[b].mean() for a, b in zip(parts, rest, strict=True)]
        )
    every = [
        first * population.weight[0] + second * population.weight[1]
        for first, second in itertools.product(*means)
    ]
    draws = assign(population, 20_000, np.random.default_rng(3))
    assert np.var(every) == pytest.approx(draws.variance, rel=1e-12)
    squares = (draws.effect - 1) ** 2
    assert abs(squares.mean() - draws.variance) < FAR * squares.std() / len(squares) ** 0.5


@pytest.mark.parametrize("mechanism", [NoisyDifferences(1.0), NoisyHistograms(1.0)])
def test_noise_on_aggregates_has_its_variance(
    mechanism: NoisyDifferences | NoisyHistograms,
) -> None:
    """What is added agrees with its closed form, and not with the printed one."""
    random = np.random.default_rng(4)
    draws = assign(SMALL, 20_000, random)
    estimate, added = mechanism.draw(draws, random)
    squares = (estimate - draws.effect) ** 2
    error = squares.std() / len(squares) ** 0.5
    assert abs(squares.mean() - added[0]) < FAR * error
    histogram = isinstance(mechanism, NoisyHistograms)
    printed = NoisyHistograms(1.0, printed=True) if histogram else NoisyDifferences(1.0, 0.5)
    assert abs(squares.mean() - printed.draw(draws, random)[1][0]) > FAR * error
    assert printed.loss(DELTA) == 2.0


shares = st.lists(st.floats(1e-6, 1), min_size=2, max_size=8)


@settings(max_examples=200, deadline=None)
@given(shares, st.data(), st.floats(0.001, 1), st.floats(0.01, 10))
def test_no_prior_beats_a_uniform_one_at_the_same_loss_and_levels(
    outcomes: list[float], data: st.DataObject, part: float, epsilon: float
) -> None:
    """With delta 0, not even the true histogram at no charge: why clusters do not pay."""
    size = len(outcomes)
    number = st.lists(st.floats(1e-6, 1), min_size=size, max_size=size)
    shape = np.array(data.draw(number))
    levels = np.cumsum(data.draw(number))
    counts = np.array(outcomes)[None]
    prior = part / size + (1 - part) * (shape / shape.sum())[None]
    flat = np.full((1, size), 1 / size)
    found, uniform = (
        given_prior(counts, each, levels, 1 / (1 + floor / size * np.expm1(epsilon)))[0]
        for each, floor in ((prior, part), (flat, 1.0))
    )
    assert found >= uniform * (1 - 1e-9)


def test_settings_have_the_published_figures() -> None:
    """22,179 users, 199 in the smallest community; features of mean 0 and norm 1; effect 1."""
    found = Communities().population((1, 2))
    units = found.sizes.sum(axis=1)
    assert (units.sum(), units.min(), len(units), found.effect) == (22_179, 199, 50, 1.0)
    row = features(units, np.random.default_rng(0))
    assert row.mean(axis=1) == pytest.approx(np.zeros(4), abs=1e-12)
    assert (row**2).sum(axis=1) == pytest.approx(np.ones(4))
    mixture = Mixture(0.0).population((1, 2))
    # Without centres all clusters are alike: normal of variance 5 in steps of 2 sqrt(5)/5.
    assert mixture.spread == pytest.approx(np.full(3, 5 / 0.8 + 1 / 12), rel=0.2)
    assert np.diff(mixture.sizes, axis=1).tolist() == [[0], [0], [0]]


def test_printed_losses_are_too_low_by_one_over_sigma() -> None:
    """Erratum 12 in the tables: the printed guarantee misses 1/sigma of what is true."""
    for epsilon, sigma in ((0.2, 10.0), (3.0, 5.0)):
        made = lines.calibrated(12, epsilon, floor=0.02, sigma=sigma, printed=True)
        assert made is not None
        assert float(made.epsilon(DELTA)) == pytest.approx(epsilon + 1 / sigma, abs=1e-4)
        true = lines.calibrated(12, epsilon, floor=0.02, sigma=sigma)
        assert true is not None
        assert true.epsilon(DELTA) <= Budget.of(epsilon).epsilon
    assert lines.calibrated(12, 0.1, floor=0.02, sigma=10.0) is None


def test_measured_variances_agree_with_the_closed_form() -> None:
    """Within the standard errors of all points together; a wrong claim of 1.5 is seen."""
    setting = Mixture(2.0, (40, 60))
    points = [
        lines.point(lines.CLUSTER, 1.0, setting, parameters(12)),
        lines.point(lines.FREE, 1.0, setting, parameters(12)),
        Point("sum", 1.0, setting, NoisyDifferences(1.0)),
    ]
    found = measure(points, Effort(repetitions=QUICK), populations=4, each=1000)
    # Laplace noise has three times the fourth moment's excess: its standard error is larger.
    assert agreement(found) < 2 * FAR
    assert abs(float((found.variance / found.exact / 1.5).mean()) - 1) > 0.2


def test_bounds_hold() -> None:
    """The added variance lies between the first term and our bound, and far below the printed."""
    found = figure_5(Effort(repetitions=QUICK)).rows
    names = ("first term", "gap", "our bound", "printed, theorem 3.5")
    assert (np.diff([column(found, name) for name in names], axis=0) > 0).all()


def test_estimates_are_unbiased() -> None:
    """The mean error of 500 realisations is 0 within its standard error (rate 1e-9)."""
    errors = column(figure_4(Effort(repetitions=QUICK)).rows, "error")
    assert abs(errors.mean()) < FAR * errors.std() / len(errors) ** 0.5
    assert len(errors) == 500


def test_choices_are_never_worse_than_a_uniform_prior() -> None:
    """At most 2% worse, in every setting of the benchmark at one loss."""
    told = list(trials(repetitions=10, epsilon=[2.0], seed=1))
    choices = [line for line in told if line.startswith("choice")]
    assert len(choices) == 3
    assert all("never above 1.02" in line for line in choices)
