"""Studies of experiments: the simulation is the product's mechanism, and losses are true."""

import itertools
import math

import numpy as np
import pytest
from shoal_studies.paper_003 import Communities, Mixture, features
from shoal_studies.paper_003_mechanisms import (
    DELTA,
    NoisyDifferences,
    NoisyHistograms,
    Population,
    Randomised,
    calibrated,
    public_choice,
    replacing,
)

from shoal.privacy.noise import Simulated
from shoal.trials import ClusterPrior, Domain, Experiment
from shoal.trials.unit_table import PriorPlan, PriorRequest

# Two-sided normal deviation of probability 1e-9.
FAR = 6.11
SMALL = Population(
    np.arange(4.0), np.array([[10, 12, 18, 0], [30, 20, 10, 0]], dtype=np.int64), shift=1
)
DOMAIN = Domain.counts(0, 3)


def parameters(lam: float = 0.5, *, pooled: bool = False) -> Randomised:
    """Cluster-DP, or cluster-free, on four levels."""
    return Randomised(replacing(4, lam, floor=0.05, sigma=4.0), pooled)


def real(pooled: bool, realisations: int, seed: int) -> np.ndarray:
    """Estimates of the product, unit by unit, over assignments; clusters apart are releases."""
    random, codes, arms, home = np.random.default_rng(seed), [], [], []
    for cluster, row in enumerate(SMALL.control):
        units = np.repeat(np.arange(4), row)
        order = random.random((realisations, len(units))).argsort(axis=1).argsort(axis=1)
        arms.append((order < SMALL.sizes[cluster, 1]).astype(np.int64))
        codes.append(units + arms[-1])
        home.append(np.broadcast_to(2 * np.arange(realisations)[:, None] + cluster, order.shape))
    outcome, arm, place = (np.concatenate(each, axis=1) for each in (codes, arms, home))
    asked = {"epsilon": "9", "levels": "all", "prior": ClusterPrior(0.05, 4.0, pooled)}
    request = PriorRequest(domain=DOMAIN, expected=None, **asked)
    found = []
    # Clusters of a pooled release share histograms: a release for each assignment.
    for part in np.array_split(np.arange(realisations), realisations if pooled else 1):
        study = Experiment(arm[part].ravel(), place[part].ravel())
        plan = PriorPlan(request, study.design, parameters().chosen)
        drawn = plan.respond(outcome[part].ravel()[study.rows], Simulated(seed + int(part[0])))
        sums = np.bincount(study.design.cell_of_unit, plan.debiased(drawn))
        means = (sums / study.design.sizes.ravel()).reshape(-1, 2, 2)
        found.append(SMALL.estimate(means))
    return np.concatenate(found)


def apart(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Distance of means and of variances, in standard errors."""
    mean = (one.mean() - other.mean()) / np.hypot(*(x.std() / len(x) ** 0.5 for x in (one, other)))
    squares = [(each - each.mean()) ** 2 for each in (one, other)]
    error = np.hypot(*(each.std() / len(each) ** 0.5 for each in squares))
    return float(mean), float((squares[0].mean() - squares[1].mean()) / error)


@pytest.mark.parametrize(("pooled", "realisations"), [(False, 4000), (True, 400)])
def test_simulation_has_mean_and_variance_of_the_product(pooled: bool, realisations: int) -> None:
    """They agree (false alarms 2e-9 each), and with the closed form; other parameters do not."""
    random = np.random.default_rng(5)
    counts = SMALL.assigned(4000, random)
    simulated, added = parameters(pooled=pooled).draw(SMALL, counts, random)
    truth = real(pooled, realisations, seed=7)
    assert max(map(abs, apart(simulated, truth))) < FAR
    squares = (truth - truth.mean()) ** 2
    exact = SMALL.variance + added.mean()
    assert abs(squares.mean() - exact) < FAR * squares.std() / realisations**0.5
    for wrong in (0.7, 0.3):
        other, _ = parameters(wrong, pooled=pooled).draw(SMALL, counts, random)
        assert abs(apart(other, truth)[1]) > FAR


def test_rounding_to_few_levels_is_unbiased_with_the_stated_variance() -> None:
    """Two of four levels: mean 1, and the exact variance, at false-alarm rates of 1e-9."""
    random, two = np.random.default_rng(9), calibrated((0, 3), 2.0, 1.0, math.inf)
    assert two is not None
    counts = SMALL.assigned(20_000, random)
    estimate, added = Randomised(two).draw(SMALL, counts, random)
    squares = (estimate - 1) ** 2
    exact, error = SMALL.variance + added.mean(), squares.std() / len(squares) ** 0.5
    assert abs(estimate.mean() - 1) < FAR * estimate.std() / len(estimate) ** 0.5
    assert abs(squares.mean() - exact) < FAR * error < 0.15 * exact


def test_assignment_variance_by_enumeration() -> None:
    """All 20 x 6 assignments of two small clusters have the closed form's variance."""
    control = np.array([[3, 1, 2, 0], [1, 1, 2, 0]], dtype=np.int64)
    units = Population(np.arange(4.0), control, shift=1)
    means = []
    for row, size in zip(control, units.sizes, strict=True):
        own = np.repeat(np.arange(4), row)
        parts = [list(each) for each in itertools.combinations(range(len(own)), size[1])]
        means.append([own[part].mean() + 1 - np.delete(own, part).mean() for part in parts])
    every = [units.weight @ pair for pair in itertools.product(*means)]
    assert np.var(every) == pytest.approx(units.variance, rel=1e-12)
    drawn = units.effect(units.assigned(20_000, np.random.default_rng(3)))
    squares = (drawn - 1) ** 2
    assert abs(squares.mean() - units.variance) < FAR * squares.std() / len(squares) ** 0.5


class Recorded:
    """Laplace noise that is 0 and leaves its scale."""

    scale = np.zeros(0)

    def laplace(self, _: float, scale: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """No noise."""
        self.scale = np.broadcast_to(scale, shape)
        return np.zeros(shape)


@pytest.mark.parametrize("mechanism", [NoisyDifferences(1.0), NoisyHistograms(1.0)])
def test_noise_on_aggregates(
    mechanism: NoisyDifferences | NoisyHistograms,
) -> None:
    """Its scale is the largest change of what is released over all changes, its variance exact."""
    random, noise = np.random.default_rng(4), Recorded()
    counts = SMALL.assigned(20_000, random)
    estimate, added = mechanism.draw(SMALL, counts, random)
    squares = (estimate - SMALL.effect(counts)) ** 2
    error = squares.std() / len(squares) ** 0.5
    assert abs(squares.mean() - added[0]) < FAR * error < 0.2 * added[0]
    one = Population(SMALL.levels, SMALL.control[:1, ::-1].copy()[:, [3, 1, 0, 2]] + 1, shift=1)
    own = one.assigned(1, random)
    mechanism.draw(one, own, noise)  # type: ignore[arg-type]
    for arm in (0, 1):
        most = np.zeros(2)
        for source, target in itertools.permutations(np.flatnonzero(own[0, 0, arm]), 2):
            moved = own.copy()
            moved[0, 0, arm, [source, target]] += [-1, 1]
            effect = abs(float((one.effect(moved) - one.effect(own))[0]))
            most = np.maximum(most, [effect, np.abs(moved - own).sum() / one.sizes[0, arm]])
        if isinstance(mechanism, NoisyHistograms):
            assert noise.scale[0, 0, arm] == pytest.approx(most[1])
        else:
            assert noise.scale[0, 0] >= most[0] * (1 - 1e-12)
            assert noise.scale[0, 0] == pytest.approx(most[0]) or arm != one.sizes[0].argmin()


def test_losses_are_those_of_the_product() -> None:
    """What is calibrated, and what is chosen, is what a plan has and costs at delta 1e-4."""
    study, domain = Experiment([0, 1] * 500), Mixture(1.0, (40,)).population((0, 0)).domain
    plan = study.table(domain, 2, delta=DELTA, mechanism=ClusterPrior(0.02, 10), levels="all")
    found = calibrated(range(12), 2.0, 0.02, 10.0)
    assert found is not None
    assert (plan.chosen.replaced, plan.chosen.floor) == (found.replaced, found.floor)
    assert float(plan.exact_epsilon) == Randomised(found).loss
    # As printed the histogram costs 1/sigma (erratum 12); one that costs it all is none.
    printed = calibrated(range(12), 2.0, 0.02, 10.0, printed=True)
    assert printed is not None
    assert Randomised(printed).loss == pytest.approx(2.1, abs=1e-4)
    assert calibrated(range(12), 0.1, 0.02, 10.0) is None
    for levels in ("all", "auto"):
        flat = study.table(domain, 2, delta=DELTA, mechanism="uniform_prior", levels=levels)
        chosen = public_choice(Mixture(1.0).population((0, 0)), 2.0, levels)
        assert tuple(chosen.kept) == tuple(flat.chosen.kept)
        assert float(flat.exact_epsilon) == pytest.approx(Randomised(chosen).loss, rel=1e-6)


def test_settings_have_the_published_figures() -> None:
    """22,179 users, 199 in the smallest community; features of mean 0 and norm 1; effect 1."""
    units = Communities().population((1, 2)).sizes.sum(axis=1)
    assert (units.sum(), units.min(), len(units)) == (22_179, 199, 50)
    row = features(units, np.random.default_rng(0))
    assert row.mean(axis=1) == pytest.approx(np.zeros(4), abs=1e-12)
    assert (row**2).sum(axis=1) == pytest.approx(np.ones(4))
    mixture = Mixture(0.0).population((1, 2))
    # Without centres all clusters are alike: normal of variance 5 in steps of 2 sqrt(5)/5.
    assert mixture.spread == pytest.approx(np.full((3, 2), 5 / 0.8 + 1 / 12), rel=0.2)
    assert np.diff(mixture.sizes, axis=1).tolist() == [[0], [0], [0]]
