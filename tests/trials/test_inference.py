"""Inference: expectations by full enumeration, regressions as oracles, coverage by simulation."""

import itertools
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats
from scipy.special import nctdtr

from shoal.data.assignment import enrol
from shoal.errors import InputError
from shoal.trials.inference import Effect, effects, effects_of, super_population
from shoal.trials.spread import added, between
from shoal.trials.student import detectable, power, quantile
from tests.support.loop import loop_over

Floats = NDArray[np.float64]

pytestmark = pytest.mark.oracle

RUNS = 20_000 if os.environ.get("SHOAL_FULL") else 1_500
BATCH = 500
ALARM = 1e-9
LEVELS = np.array([-1.0, 2.0])
LAMBDA = 0.4


# Expectations, exactly: every assignment times every response of tiny designs.


@dataclass(frozen=True)
class Tiny:
    """A cluster: potential outcomes (levels, units x arms) and units of each arm."""

    outcomes: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    def draws(self) -> Iterator[tuple[float, Floats, Floats]]:
        """Probability, group means and group variances of omega, of everything possible."""
        arms = [arm for arm, size in enumerate(self.sizes) for _ in range(size)]
        ways = sorted(set(itertools.permutations(arms)))
        for way in ways:
            mine = np.array([row[arm] for row, arm in zip(self.outcomes, way, strict=True)])
            yield from self._responses(np.array(way), mine, 1 / len(ways))

    def _responses(
        self, arm: NDArray[np.int64], mine: NDArray[np.int64], share: float
    ) -> Iterator[tuple[float, Floats, Floats]]:
        # A prior that follows the group's own outcomes: expectations hold given any prior.
        prior = [0.2 + 0.6 * float(mine[arm == a].mean()) for a in range(len(self.sizes))]
        up = np.array([prior[a] for a in arm])
        high = (1 - LAMBDA) * mine + LAMBDA * up
        middle = LEVELS[0] + (LEVELS[1] - LEVELS[0]) * up
        for answer in itertools.product((0, 1), repeat=len(arm)):
            said = np.array(answer)
            omega = (LEVELS[said] - LAMBDA * middle) / (1 - LAMBDA)
            groups = [omega[arm == a] for a in range(len(self.sizes))]
            mean = np.array([group.mean() for group in groups])
            s2 = np.array([group.var(ddof=1) if len(group) > 1 else np.nan for group in groups])
            yield share * float(np.where(said, high, 1 - high).prod()), mean, s2


def truth(clusters: list[Tiny], arm: int) -> tuple[Floats, Floats]:
    """Effect of each cluster, and S^2(tau_c)/n_c, from the potential outcomes."""
    tau = [
        LEVELS[np.array(c.outcomes)][:, arm] - LEVELS[np.array(c.outcomes)[:, 0]] for c in clusters
    ]
    return (
        np.array([each.mean() for each in tau]),
        np.array([each.var(ddof=1) / len(each) for each in tau]),
    )


def enumerated(
    clusters: list[Tiny], arm: int, of: Callable[[Effect], float]
) -> tuple[float, float, float]:
    """Expectation of the value, its variance, and the expectation of an estimated variance."""
    sizes = [cluster.sizes for cluster in clusters]
    total = np.zeros(4)
    for draw in itertools.product(*(list(cluster.draws()) for cluster in clusters)):
        chance = math.prod(part[0] for part in draw)
        found = effects(sizes, [part[1] for part in draw], [part[2] for part in draw])[arm - 1]
        error = of(found)
        # Equal omegas have no interval: their estimated variance is 0 up to rounding.
        total += chance * np.array([1, found.value, found.value**2, np.nan_to_num(error) ** 2])
    assert math.isclose(total[0], 1.0, rel_tol=1e-12)
    return float(total[1]), float(total[2] - total[1] ** 2), float(total[3])


def here(effect: Effect) -> float:
    """Standard error for these units."""
    return effect.finite_population.standard_error


def there(effect: Effect) -> float:
    """Standard error for a population of clusters."""
    return effect.super_population.standard_error


FOUR = Tiny(((0, 1), (1, 1), (0, 1), (1, 0)), (2, 2))
SAME = Tiny(((0, 0), (1, 1), (0, 0), (1, 1)), (2, 2))
THREE_ARMS = Tiny(((0, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0)), (2, 2, 1))


@pytest.mark.parametrize(
    ("clusters", "arm"), [([FOUR], 1), ([SAME], 1), ([THREE_ARMS], 1), ([FOUR, SAME], 1)]
)
def test_neyman_by_enumeration(clusters: list[Tiny], arm: int) -> None:
    """The mean of the estimated variance is Var + sum (n_c/n)^2 S^2(tau_c)/n_c, to 1e-9."""
    mean, variance, estimated = enumerated(clusters, arm, here)
    tau, spread = truth(clusters, arm)
    units = np.array([len(cluster.outcomes) for cluster in clusters])
    weight = units / units.sum()
    assert math.isclose(mean, float(weight @ tau), abs_tol=1e-9)
    too_much = float(weight**2 @ spread)
    assert math.isclose(estimated, variance + too_much, abs_tol=1e-9)
    # The mechanism is seen: without it the variance is that of the assignment alone.
    assert variance > 1.2 * assigned(clusters, arm)


def assigned(clusters: list[Tiny], arm: int) -> float:
    """Variance over the assignment of the plain difference, Neyman's."""
    n, total = sum(len(cluster.outcomes) for cluster in clusters), 0.0
    for cluster, spread in zip(clusters, truth(clusters, arm)[1], strict=True):
        y = LEVELS[np.array(cluster.outcomes)][:, [arm, 0]]
        d = np.array([cluster.sizes[arm], cluster.sizes[0]])
        total += (len(y) / n) ** 2 * float((y.var(axis=0, ddof=1) / d).sum() - spread)
    return total


ONES = [
    Tiny(((0, 1), (1, 1)), (1, 1)),
    Tiny(((1, 0), (1, 1)), (1, 1)),
    Tiny(((0, 1), (0, 0), (1, 1)), (1, 2)),
]


def expected_between(weight: Floats, tau: Floats) -> float:
    """What the pooled estimate has too much: sum b_c (tau_c - tau)^2, coded by pairs."""
    share = weight / weight.sum()
    scale = 1 + sum(p**2 / (1 - 2 * p) for p in share)
    middle = sum(p * t for p, t in zip(share, tau, strict=True))
    return float(
        sum(
            w**2 / (1 - 2 * p) / scale * (t - middle) ** 2
            for w, p, t in zip(weight, share, tau, strict=True)
        )
    )


@pytest.mark.parametrize("of", [here, there])
def test_pooled_clusters_by_enumeration(of: Callable[[Effect], float]) -> None:
    """Clusters with arms of one unit: Var + the spread of the clusters' effects, to 1e-9."""
    _, variance, estimated = enumerated(ONES, 1, of)
    weight = np.array([2, 2, 3]) / 7
    too_much = expected_between(weight, truth(ONES, 1)[0])
    assert too_much > 0.01
    assert math.isclose(estimated, variance + too_much, abs_tol=1e-9)


def test_neyman_and_pooled_clusters_together() -> None:
    """A cluster with two units an arm, and two with one: the sum of both rules."""
    clusters = [SAME, ONES[0], ONES[1]]
    _, variance, estimated = enumerated(clusters, 1, here)
    tau = truth(clusters, 1)[0]
    # Two equal clusters: (w/2)^2 (D_1 - D_2)^2 times four, w their common weight.
    too_much = 0.25**2 * (tau[1] - tau[2]) ** 2
    assert math.isclose(estimated, variance + too_much, abs_tol=1e-9)


def test_a_lone_cluster_is_pooled_with_its_nearest() -> None:
    """One cluster with an arm of one unit joins the other of the next number of units."""
    sizes, mean = [[1, 3], [2, 3], [50, 50]], [[1.0, 3.0], [0.0, 1.0], [2.0, 3.0]]
    s2 = [[np.nan, 5.0], [2.0, 3.0], [4.0, 4.0]]
    found = effects(sizes, mean, s2)[0].finite_population
    weight = np.array([4, 5, 100]) / 109
    # Two clusters: the lighter weight is raised to the heavier.
    expected = weight[1] ** 2 * (2.0 - 1.0) ** 2 + weight[2] ** 2 * (4 / 50 + 4 / 50)
    assert math.isclose(found.standard_error**2, expected, rel_tol=1e-12)


weights = hnp.arrays(np.float64, st.integers(2, 8), elements=st.floats(0.01, 100.0))


@given(weights, st.integers(0, 2**32 - 1))
def test_the_pooled_form_is_never_too_small(weight: Floats, seed: int) -> None:
    """Its expectation, by its matrix, is at least sum w^2 v for any variances and means."""
    size = len(weight)
    matrix = np.empty((size, size))
    for i, j in itertools.product(range(size), repeat=2):
        both = np.zeros(size)
        both[i] += 1
        both[j] += 1
        one = [between(weight, np.eye(size)[k], np.ones(size)).variance for k in (i, j)]
        matrix[i, j] = (between(weight, both, np.ones(size)).variance - one[0] - one[1]) / 2
    np.fill_diagonal(
        matrix, [between(weight, each, np.ones(size)).variance for each in np.eye(size)]
    )
    scale = float(matrix.max())
    assert float(np.linalg.eigvalsh(matrix)[0]) > -1e-9 * scale
    assert (np.diag(matrix) >= weight**2 * (1 - 1e-9)).all()
    heavy = 2 * weight.max() > weight.sum()
    if not heavy:
        assert np.allclose(np.diag(matrix), weight**2, rtol=1e-7)
    variance = np.random.default_rng(seed).random(size) * 1.9 + 0.1
    seen = between(weight, np.arange(size, dtype=np.float64), variance).degrees
    wanted = []
    for v in (variance, np.ones(size)):
        root = np.sqrt(v)
        inner = root[:, None] * matrix * root
        wanted.append(np.trace(inner) ** 2 / (inner**2).sum())
    assert math.isclose(seen, max(1.0, min(wanted)), rel_tol=1e-6)


def test_equal_clusters_have_the_plain_form() -> None:
    """Equal weights: the variance of a mean of C numbers, with C - 1 degrees of freedom."""
    value = np.array([1.0, 4.0, 2.0, -3.0, 0.5])
    found = super_population(np.full(5, 20), value)
    assert math.isclose(found.standard_error**2, float(value.var(ddof=1)) / 5, rel_tol=1e-12)
    assert math.isclose(found.degrees_of_freedom, 4.0, rel_tol=1e-12)
    low, high = stats.t.interval(0.95, 4, value.mean(), found.standard_error)
    assert np.allclose(found.interval, (low, high), rtol=1e-12)


# Oracles: regressions.


def test_one_cluster_is_hc2() -> None:
    """Least squares on the arm with HC2 errors, from the hat matrix."""
    rng = np.random.default_rng(1)
    treated = rng.permutation(np.repeat([0.0, 1.0], [13, 21]))
    y = rng.normal(3 * treated, 1 + treated)
    coefficient, error = hc2(np.column_stack([np.ones(34), treated]), y)
    groups = [y[treated == a] for a in (0, 1)]
    found = summarised([groups])
    assert math.isclose(found.value, coefficient[1], rel_tol=1e-12)
    assert math.isclose(found.finite_population.standard_error**2, error[1, 1], rel_tol=1e-12)
    welch = stats.ttest_ind(groups[1], groups[0], equal_var=False).confidence_interval(0.95)
    assert np.allclose(found.finite_population.interval, tuple(welch), rtol=5e-3)


def test_clusters_are_a_saturated_regression() -> None:
    """Cluster indicators and their products with the arm: HC2 errors of the weighted sum."""
    rng = np.random.default_rng(2)
    sizes = np.array([[5, 9], [12, 3], [4, 4], [30, 20]])
    groups = [
        [rng.normal(a + c, 1 + a, size) for a, size in enumerate(row)]
        for c, row in enumerate(sizes)
    ]
    y = np.concatenate([group for row in groups for group in row])
    home = np.repeat(np.arange(4), sizes.sum(axis=1))
    treated = np.repeat(np.tile([0.0, 1.0], 4), sizes.ravel())
    indicator = np.eye(4)[home]
    coefficient, error = hc2(np.hstack([indicator, indicator * treated[:, None]]), y)
    weight = np.r_[np.zeros(4), sizes.sum(axis=1) / sizes.sum()]
    found = summarised(groups)
    assert math.isclose(found.value, weight @ coefficient, rel_tol=1e-10)
    variance = float(weight @ error @ weight)
    assert math.isclose(found.finite_population.standard_error**2, variance, rel_tol=1e-10)
    each = np.sqrt(np.diag(error)[4:])
    assert np.allclose(found.clusters.standard_error, each, rtol=1e-10)


def hc2(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Coefficients and their HC2 covariance."""
    inverse = np.linalg.inv(x.T @ x)
    coefficient = inverse @ x.T @ y
    leverage = np.einsum("ij,jk,ik->i", x, inverse, x)
    square = (y - x @ coefficient) ** 2 / (1 - leverage)
    return coefficient, inverse @ (x.T * square) @ x @ inverse


def summarised(groups: list[list[Floats]]) -> Effect:
    """The effect from the groups of units."""
    sizes = [[len(group) for group in row] for row in groups]
    mean = [[group.mean() for group in row] for row in groups]
    s2 = [[group.var(ddof=1) for group in row] for row in groups]
    return effects(sizes, mean, s2)[0]


# Statistics: coverage.


def mixture(rng: np.random.Generator, sizes: NDArray[np.int64]) -> list[Floats]:
    """Outcomes of docs/explanation/studies-trials.md#the-gaussian-mixture, beta 4.5 of 5."""
    scale = 2 * math.sqrt(5) / 5
    return [
        np.clip(
            np.round((math.sqrt(4.5) * rng.normal() + math.sqrt(0.5) * rng.normal(size=n)) / scale),
            -5,
            5,
        )
        for n in sizes
    ]


def responded(
    rng: np.random.Generator, control: Floats, treated: int, lam: float, runs: int
) -> tuple[Floats, Floats]:
    """Group means and variances of omega in one cluster: runs x 2, fresh assignments, tau = 1."""
    n = len(control)
    order = rng.permuted(np.broadcast_to(np.arange(n), (runs, n)), axis=1)
    arm = np.arange(n) < treated
    y = control[order] + arm
    uniform = rng.integers(-5, 7, size=y.shape)
    said = np.where(rng.random(y.shape) < lam, uniform, y)
    omega = (said - lam * 0.5) / (1 - lam)
    two = (omega[:, ~arm], omega[:, arm])
    mean = np.stack([each.mean(axis=1) for each in two], axis=1)
    return mean, np.stack([each.var(axis=1, ddof=1) for each in two], axis=1)


def intervals(sizes: NDArray[np.int64], lam: float, runs: int) -> Floats:
    """Error of the effect, and half the width at 95% and at 50%, runs x 3."""
    rng = np.random.default_rng(3)
    population = mixture(rng, sizes)
    both = np.stack([sizes - sizes // 2, sizes // 2], axis=1)
    rows = []
    for _ in range(runs // BATCH):
        drawn = [responded(rng, y, len(y) // 2, lam, BATCH) for y in population]
        mean, s2 = (np.stack([part[i] for part in drawn], axis=1) for i in (0, 1))
        for m, s in zip(mean, s2, strict=True):
            wide, narrow = (effects(both, m, s, confidence=level)[0] for level in (0.95, 0.5))
            ends = (wide.finite_population.interval[1], narrow.finite_population.interval[1])
            rows.append([wide.value - 1.0, ends[0] - wide.value, ends[1] - wide.value])
    return np.array(rows)


def plausible(found: Floats, ranges: tuple[tuple[float, float], ...]) -> bool:
    """Whether coverages within these ranges explain what was seen, at a false-alarm rate of 1e-9.

    Args:
        found: Errors, then half the width of each interval.
        ranges: Lowest and highest coverage of each interval.
    """
    runs, each = len(found), ALARM / (2 * len(ranges))
    held = (np.abs(found[:, :1]) <= found[:, 1:]).sum(axis=0).tolist()
    return all(
        stats.binom.cdf(seen, runs, low) > each and stats.binom.sf(seen - 1, runs, high) > each
        for seen, (low, high) in zip(held, ranges, strict=True)
    )


def wrong(found: Floats, scale: float) -> Floats:
    """The same with standard errors times `scale`."""
    return np.asarray(found * np.array([1.0, scale, scale]))


@pytest.mark.parametrize(
    ("sizes", "lam"),
    [
        (np.array([500, 1000, 2000]), 0.8),
        (np.round(np.geomspace(8, 200, 32)).astype(np.int64), 0.6),
        (np.array([20, 20, 22]), 0.3),
        (np.full(50, 4), 0.5),
    ],
    ids=["paper", "mixed", "small", "fours"],
)
def test_coverage_in_the_gaussian_mixture(sizes: NDArray[np.int64], lam: float) -> None:
    """95% intervals cover in 94% to 96.5%; wrong standard errors are seen."""
    found = intervals(sizes, lam, RUNS)
    ranges = ((0.94, 0.965), (0.485, 0.52))
    assert plausible(found, ranges)
    assert not plausible(wrong(found, 0.7), ranges)
    assert not plausible(wrong(found, 1.4), ranges)


@pytest.mark.parametrize("depends", [False, True])
def test_coverage_of_a_population_of_clusters(depends: bool) -> None:
    """Clusters drawn with sizes 50 to 500, effects free of size or not."""
    rng = np.random.default_rng(4)
    options = np.array([50.0, 100.0, 200.0, 500.0])
    slope = 0.3 if depends else 0.0
    truth_here = float((options * (1 + slope * np.log(options / 100))).sum() / options.sum())
    rows = []
    for _ in range(RUNS):
        size = rng.choice(options, 30)
        own = 1 + slope * np.log(size / 100) + 0.5 * rng.normal(size=30)
        difference = own + rng.normal(size=30) * np.sqrt(40 / size)
        wide, narrow = (super_population(size, difference, level) for level in (0.95, 0.5))
        middle = sum(wide.interval) / 2
        rows.append([middle - truth_here, wide.interval[1] - middle, narrow.interval[1] - middle])
    found = np.array(rows)
    ranges = ((0.94, 0.975), (0.485, 0.54))
    assert plausible(found, ranges)
    assert not plausible(wrong(found, 0.7), ranges)
    assert not plausible(wrong(found, 1.5), ranges)


def test_welch_degrees_are_right_on_average() -> None:
    """2 V^2/Var(V) of sums of a scaled chi-squared each, with the degrees' formula at the truth."""
    rng = np.random.default_rng(5)
    degrees, truth_here = np.array([1.0, 3.0, 9.0]), np.array([1.0, 2.0, 1.5])
    many = 200_000
    drawn = truth_here * rng.chisquare(degrees, (many, 3)) / degrees
    # E[a^2] = truth^2 (1 + 2/f), so that a^2/(f + 2) has the mean truth^2/f.
    uncertain = (drawn**2 / (degrees + 2)).mean(axis=0)
    error = (drawn**2 / (degrees + 2)).std(axis=0) / math.sqrt(many)
    assert (np.abs(uncertain - truth_here**2 / degrees) < 6.2 * error).all()
    assert not (np.abs(uncertain * 1.2 - truth_here**2 / degrees) < 6.2 * error).any()


@given(
    hnp.arrays(np.float64, 5, elements=st.floats(1e-6, 10)),
    hnp.arrays(np.float64, 5, elements=st.floats(1, 50)),
    st.floats(0, 10),
)
def test_degrees_are_at_least_the_least(parts: Floats, degrees: Floats, known: float) -> None:
    """And one estimate alone has its own; a known part only adds."""
    found, plain = added(parts, degrees, known), added(parts, degrees)
    assert found.degrees >= plain.degrees * (1 - 1e-9) >= degrees.min() * (1 - 2e-9)
    assert math.isclose(added(parts[:1], degrees[:1]).degrees, degrees[0], rel_tol=1e-9)
    assert math.isclose(found.variance, parts.sum() + known, rel_tol=1e-9)


# Quantiles and power.


@pytest.mark.parametrize("degrees", [1.0, 1.7, 4.0, 33.3, 1e5, math.inf])
def test_quantiles_against_scipy(degrees: float) -> None:
    """The t distribution, and the normal one at infinity."""
    for confidence in (0.5, 0.9, 0.95, 0.999, 1 - 1e-9):
        other = stats.norm.isf if math.isinf(degrees) else stats.t(degrees).isf
        expected = float(other((1 - confidence) / 2))
        assert math.isclose(quantile(degrees, confidence), expected, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("effect", "degrees", "confidence"),
    [(2.0, math.inf, 0.95), (-3.0, 5.0, 0.95), (0.5, 2.0, 0.5), (0.0, 8.0, 0.9)],
)
def test_power_by_simulation(effect: float, degrees: float, confidence: float) -> None:
    """How often the interval leaves out 0, and not another number of degrees or effect."""
    rng, many = np.random.default_rng(6), 200_000
    error = 1.5 * np.ones(many)
    if not math.isinf(degrees):
        error *= np.sqrt(rng.chisquare(degrees, many) / degrees)
    value = 1.5 * (effect + rng.normal(size=many))
    seen = int((np.abs(value) > quantile(degrees, confidence) * error).sum())

    def fits(chance: float) -> bool:
        tails = stats.binom.cdf(seen, many, chance), stats.binom.sf(seen - 1, many, chance)
        return min(tails) > ALARM / 2

    assert fits(power(1.5 * effect, 1.5, confidence, degrees))
    assert not fits(power(1.5 * (abs(effect) + 0.2), 1.5, confidence, degrees))


@pytest.mark.parametrize("degrees", [1.0, 1.7, 6.0, 300.0, 1e6])
def test_power_against_scipy(degrees: float) -> None:
    """The noncentral t distribution where SciPy has it, and the normal one for many degrees."""
    for effect, confidence in itertools.product((0.0, 0.3, 2.0, 8.0), (0.5, 0.95, 0.999)):
        limit = quantile(degrees, confidence)
        below = nctdtr(degrees, effect, -limit)
        # SciPy has NaN for some of the smallest: at most the normal tail beyond 8.
        expected = 1 - nctdtr(degrees, effect, limit) + (0.0 if effect == 8.0 else below)
        found = power(effect, 1.0, confidence, degrees)
        assert math.isclose(found, float(expected), abs_tol=1e-9)
    assert math.isclose(power(2.0, 1.0, 0.95, 1e6), power(2.0, 1.0), abs_tol=1e-5)
    assert power(1e4, 1.0, 0.95, degrees) > 0.99
    assert power(0.5, 1.0, 1e-12, degrees) > 1 - 2e-12


@given(st.floats(0.06, 0.999), st.floats(1e-6, 1e6), st.sampled_from([1.0, 3.5, 40.0, math.inf]))
def test_detectable_inverts_power(wanted: float, error: float, degrees: float) -> None:
    """The least effect has the power asked for, and nine tenths of it has less."""
    found = detectable(error, wanted, 0.95, degrees)
    assert math.isclose(power(found, error, 0.95, degrees), wanted, abs_tol=1e-8)
    assert power(0.9 * found, error, 0.95, degrees) < wanted


# Units: what is not known, what is refused, documents and text.


def test_what_is_not_known_is_nan() -> None:
    """One cluster with an arm of one unit; outcomes that are all equal."""
    alone = effects([[1, 9]], [[1.0, 2.0]], [[np.nan, 3.0]])[0]
    for found in (alone.finite_population, alone.super_population):
        assert math.isnan(found.standard_error)
        assert np.isnan(found.interval).all()
        assert found.about.startswith("Not known: there is one cluster")
    assert alone.value == 1.0
    assert "no interval" in str(alone)
    same = effects([[5, 5]], [[7.3, 7.3]], [[1e-30, 0.0]])[0].finite_population
    assert math.isnan(same.standard_error)
    assert same.about.startswith("Not known: no outcomes differ")
    assert math.isnan(super_population([4], [1.0]).standard_error)


def test_known_noise_counts_and_broken_variances_do_not() -> None:
    """Noise adds its variance without uncertainty; s2 below 0, or of one unit, is no number."""
    sizes, mean, s2 = [[10, 10], [10, 10]], [[1.0, 2.0], [0.0, 2.0]], [[4.0, 4.0], [-1.0, 0.0]]
    plain = effects(sizes, mean, s2)[0].finite_population
    noisy = effects(sizes, mean, s2, noise_variance=[[0.5, 0.1], [0.0, 0.2]])[0].finite_population
    assert math.isclose(plain.standard_error**2, 0.25 * 0.8, rel_tol=1e-12)
    assert math.isclose(noisy.standard_error**2, 0.25 * 1.6, rel_tol=1e-12)
    assert noisy.degrees_of_freedom > plain.degrees_of_freedom
    written = effects([[1, 9], [1, 9]], mean, [[0.0, 1.0], [123.0, 1.0]])[0].finite_population
    pooled = super_population([10, 10], [1.0, 2.0])
    assert math.isclose(written.standard_error, pooled.standard_error, rel_tol=1e-12)


def test_degrees_of_one_arm() -> None:
    """Where only one arm varies, its own degrees: d - 1, with the t interval of its mean."""
    found = effects([[10, 6]], [[0.0, 1.0]], [[0.0, 4.0]])[0].finite_population
    assert math.isclose(found.degrees_of_freedom, 5.0, rel_tol=1e-12)
    expected = stats.t.interval(0.95, 5, 1.0, math.sqrt(4 / 6))
    assert np.allclose(found.interval, expected, rtol=1e-12)


def test_released_differences() -> None:
    """Without s2 the clusters' differences alone give both intervals."""
    sizes, nothing = np.array([[10, 12], [30, 31], [20, 20]]), np.full((3, 2), np.nan)
    found = effects(sizes, [[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]], nothing)[0]
    alone = super_population(sizes, [1.0, 2.0, 4.0])
    assert found.finite_population.standard_error == found.super_population.standard_error
    assert math.isclose(alone.standard_error, found.super_population.standard_error, rel_tol=1e-12)


def test_three_arms() -> None:
    """Every arm against the control, weighted by the units of all arms."""
    sizes, s2 = np.array([[5, 16, 7], [8, 9, 10]]), np.ones((2, 3))
    mean = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 5.0]])
    found = effects(sizes, mean, s2, arms=["old", "new", "newer"], clusters=["a", "b"])
    assert [(each.arm, each.control) for each in found] == [("new", "old"), ("newer", "old")]
    weight = np.array([28, 27]) / 55
    assert math.isclose(found[1].value, weight @ [3.0, 4.0], rel_tol=1e-12)
    variance = float(weight**2 @ [1 / 5 + 1 / 7, 1 / 8 + 1 / 10])
    assert math.isclose(found[1].finite_population.standard_error ** 2, variance, rel_tol=1e-12)


def test_documents_and_text() -> None:
    """Valid JSON where numbers are missing; one line a cluster."""
    assignment = enrol(["b", "a", "a", "a", "b"], [1, 1, 2, 2, 2]).assignment
    found = effects_of(assignment, np.array([[0.0, 1.0], [2.0, 2.5]]), np.full((2, 2), 2.0))[0]
    document = json.loads(json.dumps(found.to_document(), allow_nan=False))
    assert document["clusters"]["names"] == [1, 2]
    assert document["clusters"]["standard_error"] == [None, None]
    assert document["finite_population"]["interval"] == list(found.finite_population.interval)
    assert found.clusters_text().splitlines()[0] == "  1: 1, 0.4 of the units"
    one = effects([[4, 4]], [[0.0, 1.0]], [[2.0, 2.0]])[0]
    assert str(one).splitlines()[1].endswith("for units like these")
    assert one.clusters_text() == "  0: 1, standard error 1, 1 of the units"
    infinite = effects([[4, 4]], [[0.0, 1.0]], [[0.0, 0.0]], noise_variance=[[1.0, 1.0]])[0]
    assert math.isinf(infinite.finite_population.degrees_of_freedom)
    assert infinite.to_document()["finite_population"]["degrees_of_freedom"] is None


@loop_over(
    "call",
    [
        lambda: effects([1, 2], [1.0, 2.0], [1.0, 1.0]),
        lambda: effects([[5]], [[1.0]], [[1.0]]),
        lambda: effects([[0, 5]], [[1.0, 2.0]], [[1.0, 1.0]]),
        lambda: effects([[2.5, 5]], [[1.0, 2.0]], [[1.0, 1.0]]),
        lambda: effects([[5, 5]], [[np.nan, 2.0]], [[1.0, 1.0]]),
        lambda: effects([[5, 5]], [[1.0, 2.0]], [[np.inf, 1.0]]),
        lambda: effects([[5, 5]], [[1.0, 2.0]], [[1.0]]),
        lambda: effects([[5, 5]], [[1.0, 2.0]], [[1.0, 1.0]], noise_variance=[[-1.0, 0.0]]),
        lambda: effects([[5, 5]], [[1.0, 2.0]], [[1.0, 1.0]], confidence=1.0),
        lambda: effects([[1, 5]], [[1.0, 2.0]], [[1.0, 1.0]], confidence=95.0),
        lambda: effects([[5, 5]], [[1.0, 2.0]], [[1.0, 1.0]], arms=["a"]),
        lambda: effects([[5, 5]], [[1.0, 2.0]], [[1.0, 1.0]], clusters=["a", "b"]),
        lambda: super_population([5, 0], [1.0, 2.0]),
        lambda: super_population([5, 5], [1.0, np.nan]),
        lambda: super_population([], []),
        lambda: super_population([5, 5], [1.0]),
        lambda: quantile(0.0, 0.95),
        lambda: quantile(math.nan, 0.95),
        lambda: power(1.0, 0.0),
        lambda: power(math.nan, 1.0),
        lambda: detectable(1.0, 0.05),
        lambda: detectable(math.inf),
        lambda: detectable(1.0, 1.0),
    ],
)
def test_refused(call: Callable[[], object]) -> None:
    """Unusable numbers are refused, in words."""
    with pytest.raises(InputError, match="allowed"):
        call()
