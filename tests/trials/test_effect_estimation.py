"""Effects of arms: expectations by enumeration, pooled clusters by matrices, HC2 regressions."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats

from shoal.trials.design import Design
from shoal.trials.effect_estimation import Cells, Spread, added, between, effects_of, inferred
from shoal.trials.results import Effect

Floats = NDArray[np.float64]

pytestmark = pytest.mark.oracle

LEVELS = np.array([-1.0, 2.0])
LAMBDA = 0.4


def effects(sizes: object, mean: object, s2: object, noise: object = None) -> list[Effect]:
    """Of cells with numbers for names."""
    own = np.array(sizes)
    clusters, arms = (pa.array(np.arange(each)) for each in own.shape)
    design = Design(clusters=clusters, arms=arms, cell=np.arange(own.size), many=own.ravel())
    cells = Cells.of(own, np.array(mean, float), np.array(s2, float))
    if noise is not None:
        none = np.zeros(own.shape)
        cells = Cells(own, cells.mean, cells.s2, np.array(noise, float), none, none)
    return effects_of(design, cells, 0.95)


# Expectations, exactly: every assignment times every response of tiny designs.


@dataclass(frozen=True)
class Tiny:
    """A cluster: potential outcomes (levels, units x arms) and units of each arm."""

    outcomes: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    def outcomes_of_draws(self) -> list[tuple[float, list[float], list[float]]]:
        """Draws with the same means and variances are taken together."""
        chances: dict[tuple[tuple[float, ...], ...], float] = {}
        for chance, *found in self.draws():
            # In text, as what is no number is equal to nothing.
            key = tuple(tuple(f"{x:.13g}" for x in each) for each in found)
            chances[key] = chances.get(key, 0.0) + chance
        return [
            (chance, *([float(x) for x in each] for each in key)) for key, chance in chances.items()
        ]

    def draws(self) -> Iterator[tuple[float, Floats, Floats]]:
        """Probability, means and variances of debiased responses by arm, of all that may be."""
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

    def truth(self, arm: int) -> tuple[float, float]:
        """The effect, and S^2(tau)/n."""
        own = LEVELS[np.array(self.outcomes)]
        tau = own[:, arm] - own[:, 0]
        return float(tau.mean()), float(tau.var(ddof=1)) / len(tau)


def enumerated(clusters: Sequence[Tiny], arm: int) -> Floats:
    """Means of the value, of its square, and of both estimated variances."""
    sizes = [cluster.sizes for cluster in clusters]
    total = np.zeros(5)
    for draw in itertools.product(*(cluster.outcomes_of_draws() for cluster in clusters)):
        chance = math.prod(part[0] for part in draw)
        found = effects(sizes, [part[1] for part in draw], [part[2] for part in draw])[arm - 1]
        errors = [each.standard_error for each in (found.finite_population, found.super_population)]
        # Equal responses have no interval: their estimated variance is 0 up to rounding.
        squares = np.nan_to_num(np.array(errors)) ** 2
        total += chance * np.array([1, found.value, found.value**2, *squares])
    assert math.isclose(total[0], 1.0, rel_tol=1e-12)
    return np.array([total[1], total[2] - total[1] ** 2, total[3], total[4]])


FOUR = Tiny(((0, 1), (1, 1), (0, 1), (1, 0)), (2, 2))
SAME = Tiny(((0, 0), (1, 1), (0, 0), (1, 1)), (2, 2))
THREE_ARMS = Tiny(((0, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0)), (2, 2, 1))


@pytest.mark.parametrize(("clusters", "arm"), [([THREE_ARMS], 1), ([FOUR, SAME], 1)])
def test_neyman_by_enumeration(clusters: list[Tiny], arm: int) -> None:
    """The mean of the estimated variance is Var + sum (n_c/n)^2 S^2(tau_c)/n_c, to 1e-9."""
    mean, variance, estimated, _ = enumerated(clusters, arm)
    weight = np.array([len(cluster.outcomes) for cluster in clusters], float)
    weight /= weight.sum()
    tau, spread = np.array([each.truth(arm) for each in clusters]).T
    assert math.isclose(mean, float(weight @ tau), abs_tol=1e-9)
    assert math.isclose(estimated, variance + float(weight**2 @ spread), abs_tol=1e-9)


ONES = [
    Tiny(((0, 1), (1, 1)), (1, 1)),
    Tiny(((1, 0), (1, 1)), (1, 1)),
    Tiny(((0, 1), (0, 0), (1, 1)), (1, 2)),
]


def test_pooled_clusters_by_enumeration() -> None:
    """Clusters with arms of one unit: Var + sum b_c (tau_c - tau)^2, coded cluster by cluster."""
    _, variance, *estimated = enumerated(ONES, 1)
    weight, tau = np.array([2, 2, 3]) / 7, [each.truth(1)[0] for each in ONES]
    scale = 1 + sum(p**2 / (1 - 2 * p) for p in weight)
    middle = sum(p * t for p, t in zip(weight, tau, strict=True))
    too_much = sum(
        p**2 / (1 - 2 * p) / scale * (t - middle) ** 2 for p, t in zip(weight, tau, strict=True)
    )
    assert too_much > 0.01
    assert estimated == pytest.approx([variance + too_much] * 2, abs=1e-9)


def test_a_lone_cluster_is_pooled_with_its_nearest() -> None:
    """One cluster with an arm of one unit joins the other of the next number of units."""
    s2 = [[np.nan, 5.0], [2.0, 3.0], [4.0, 4.0]]
    (found,) = effects([[1, 3], [2, 3], [50, 50]], [[1.0, 3.0], [0.0, 1.0], [2.0, 3.0]], s2)
    weight = np.array([4, 5, 100]) / 109
    # Two clusters: the lighter weight is raised to the heavier.
    expected = weight[1] ** 2 * (2.0 - 1.0) ** 2 + weight[2] ** 2 * (4 / 50 + 4 / 50)
    assert found.finite_population.standard_error**2 == pytest.approx(expected, rel=1e-12)


weights = hnp.arrays(np.float64, st.integers(2, 8), elements=st.floats(0.01, 100.0))


@given(weights, st.integers(0, 2**32 - 1))
def test_the_pooled_form_is_never_too_small(weight: Floats, seed: int) -> None:
    """Its expectation, by its matrix, is at least sum w^2 v for any variances and means."""
    size = len(weight)
    one = np.eye(size)

    def form(value: Floats) -> float:
        return between(weight, value, np.ones(size)).variance

    own = [form(each) for each in one]
    matrix = np.diag(own)
    for i, j in itertools.combinations(range(size), 2):
        matrix[i, j] = matrix[j, i] = (form(one[i] + one[j]) - own[i] - own[j]) / 2
    assert float(np.linalg.eigvalsh(matrix)[0]) > -1e-9 * float(matrix.max())
    assert (np.diag(matrix) >= weight**2 * (1 - 1e-9)).all()
    if 2 * weight.max() <= weight.sum():
        assert np.allclose(np.diag(matrix), weight**2, rtol=1e-7)
    variance = np.random.default_rng(seed).random(size) * 1.9 + 0.1
    seen = between(weight, np.arange(size, dtype=np.float64), variance).degrees
    wanted = []
    for v in (variance, np.ones(size)):
        inner = np.sqrt(v)[:, None] * matrix * np.sqrt(v)
        wanted.append(np.trace(inner) ** 2 / (inner**2).sum())
    assert math.isclose(seen, max(1.0, min(wanted)), rel_tol=1e-6)


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
    x = np.hstack([np.eye(4)[home], np.eye(4)[home] * treated[:, None]])
    inverse = np.linalg.inv(x.T @ x)
    square = (y - x @ inverse @ x.T @ y) ** 2 / (1 - np.einsum("ij,jk,ik->i", x, inverse, x))
    error = inverse @ (x.T * square) @ x @ inverse
    weight = np.r_[np.zeros(4), sizes.sum(axis=1) / sizes.sum()]
    mean, s2 = ([[f(g) for g in row] for row in groups] for f in (np.mean, _s2))
    (found,) = effects(sizes, mean, s2)
    assert found.value == pytest.approx(weight @ inverse @ x.T @ y, rel=1e-10)
    variance = float(weight @ error @ weight)
    assert found.finite_population.standard_error**2 == pytest.approx(variance, rel=1e-10)
    assert found.clusters.standard_error == pytest.approx(np.sqrt(np.diag(error)[4:]), rel=1e-10)
    welch = stats.ttest_ind(*groups[3][::-1], equal_var=False).confidence_interval(0.95)
    (alone,) = effects(sizes[3:], mean[3:], s2[3:])
    assert np.allclose(alone.finite_population.interval, tuple(welch), rtol=0, atol=5e-3)


def _s2(group: Floats) -> float:
    return float(group.var(ddof=1))


def test_degrees_of_freedom() -> None:
    """Of one arm that varies; of equal clusters C - 1; right on average for many small groups."""
    (found,) = effects([[10, 6]], [[0.0, 1.0]], [[0.0, 4.0]])
    assert found.finite_population.degrees_of_freedom == pytest.approx(5)
    expected = stats.t.interval(0.95, 5, 1.0, math.sqrt(4 / 6))
    assert found.finite_population.interval == pytest.approx(expected)
    value = np.array([1.0, 4.0, 2.0, -3.0, 0.5])
    (found,) = effects(np.full((5, 2), 10), np.outer(value, [0, 1]), np.ones((5, 2)))
    assert found.super_population.standard_error**2 == pytest.approx(value.var(ddof=1) / 5)
    assert found.super_population.degrees_of_freedom == pytest.approx(4)
    # Many small groups: the mean of 1/degrees is that of the variance, not 1 + 2/f times as much.
    drawn = np.random.default_rng(4).chisquare(2, (4000, 60)) / 2
    known = np.array([added(row, np.full(60, 2.0))[1] for row in drawn])
    assert np.mean(1 / (known + 2)) == pytest.approx(1 / 122, rel=0.03)
    assert added(np.array([1.0, 0.0]), np.array([3.0, 50.0]))[1] == 3


def test_what_is_not_known_is_nan() -> None:
    """One cluster with an arm of one unit; outcomes that are all equal; no rounding is a width."""
    (alone,) = effects([[1, 9]], [[1.0, 2.0]], [[np.nan, 3.0]])
    for found in (alone.finite_population, alone.super_population):
        assert np.isnan([found.standard_error, *found.interval]).all()
        assert found.about.startswith("Not known: there is one cluster")
    assert alone.value == 1.0
    assert "no interval" in str(alone)
    (same,) = effects([[5, 5]], [[7.3, 7.3]], [[1e-30, 0.0]])
    assert same.finite_population.about.startswith("Not known: all outcomes are equal")
    wide = inferred(0.0, Spread(-1.0, 5.0, noise=4.0), 0.0, 0.95, "").interval
    assert wide[1] == pytest.approx(-math.sqrt(2) * math.log(0.05), rel=1e-4)


def test_known_noise_counts_and_broken_variances_do_not() -> None:
    """Noise adds its variance without uncertainty; s2 below 0 is no number."""
    sizes, mean, s2 = [[10, 10], [10, 10]], [[1.0, 2.0], [0.0, 2.0]], [[4.0, 4.0], [-1.0, 0.0]]
    plain = effects(sizes, mean, s2)[0].finite_population
    noisy = effects(sizes, mean, s2, [[0.5, 0.1], [0.0, 0.2]])[0].finite_population
    assert noisy.standard_error**2 - plain.standard_error**2 == pytest.approx(0.25 * 0.8)


def test_three_arms_and_documents() -> None:
    """Each against the control; what is not known is null."""
    found = effects([[5, 5, 1]], [[1.0, 2.0, 4.0]], [[1.0, 2.0, np.nan]])
    assert [each.value for each in found] == [1.0, 3.0]
    document = found[1].to_document()
    assert document["finite_population"]["standard_error"] is None
    assert document["clusters"]["value"] == [3.0]
    assert document["arm"] == 2
    assert str(found[0]).startswith("1 against 0: 1, 95% [")
