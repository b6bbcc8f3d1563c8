"""Chosen parameters: predictions against the mechanism itself, and never worse than uniform."""

import itertools
import math
import os
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.data.outcome_space import Space
from shoal.errors import InputError
from shoal.theory.randomised_response import given_prior, with_uniform_prior
from shoal.trials import response
from shoal.trials.choose import choose
from shoal.trials.expected import Expected, family
from shoal.trials.parameter_search import TOLERANCE
from shoal.trials.parameters import ONE, Parameters, calibrate
from shoal.trials.predicted import Scene, group_weights, represent
from tests.support.loop import loop_over

Floats = NDArray[np.float64]

pytestmark = pytest.mark.oracle

FULL = bool(os.environ.get("SHOAL_FULL"))
RUNS = 80_000 if FULL else 6_000
# Two-sided normal tail of 1e-9.
ALARM = 6.11
ZERO = Fraction(0)
PAPER = Space.counts(-5, 6)
SIZES = np.array([[250, 250], [500, 500], [1000, 1000]])


@dataclass(frozen=True)
class Mechanism:
    """A trial without effect, run many times at once by the mechanism's own functions."""

    sizes: NDArray[np.int64]
    space: Space
    parameters: Parameters
    expected: Expected
    pooled: bool

    def effects(self, runs: int, random: np.random.Generator) -> Floats:
        """The estimate of every run, for clusters and outcomes drawn anew."""
        clusters, arms = self.sizes.shape
        kinds = self.expected.kinds(self.space)
        kind = random.choice(len(kinds.share), size=(runs, clusters), p=kinds.share)
        flat = np.tile(self.sizes.ravel(), runs)
        group = np.repeat(np.arange(len(flat)), flat)
        ends = np.cumsum(kinds.levels, axis=1)[np.repeat(kind.ravel(), arms)]
        level = (random.random(len(group))[:, None] > ends[group, :-1]).sum(axis=1)
        codes = self.space.encode(
            self.space.array[level], self._words(random, len(group)), self.parameters.kept
        )
        return self._estimates(codes, group, runs, random)

    def _estimates(
        self,
        codes: NDArray[np.int64],
        group: NDArray[np.int64],
        runs: int,
        random: np.random.Generator,
    ) -> Floats:
        clusters, arms = self.sizes.shape
        used = self.parameters.levels
        home = group
        sizes = np.tile(self.sizes.ravel(), runs)
        if self.pooled:
            home = group // (clusters * arms) * arms + group % arms
            sizes = np.tile(self.sizes.sum(axis=0), runs)
        counts = response.tabulate(codes, home, len(sizes), used)
        noise = random.laplace(scale=2.0**self.parameters.lattice_bits, size=counts.shape)
        noisy = counts * self.parameters.weight + np.rint(noise).astype(np.int64)
        prior = response.prior_of(noisy, sizes, self.parameters)
        given = response.respond(
            codes, home, prior, self.parameters, self._words(random, len(group))
        )
        levels = self.space.array[list(self.parameters.kept)]
        omega = response.debiased(levels, prior, self.parameters)[home, given]
        sums = np.bincount(group, omega, minlength=runs * self.sizes.size)
        mean = sums.reshape(runs, clusters, arms) / self.sizes
        weight = self.sizes.sum(axis=1) / self.sizes.sum()
        return np.asarray((mean[:, :, 1] - mean[:, :, 0]) @ weight)

    @staticmethod
    def _words(random: np.random.Generator, size: int) -> NDArray[np.uint64]:
        return random.integers(0, 2**64, size, dtype=np.uint64)


def variance_of(found: Mechanism, seed: int, runs: int = RUNS) -> tuple[float, float]:
    """Mean square of the effects, whose expectation is 0, and its standard error."""
    random = np.random.default_rng(seed)
    per = max(1, 2_000_000 // int(found.sizes.sum()))
    batches = [min(per, runs - at) for at in range(0, runs, per)]
    squares = np.concatenate([found.effects(each, random) for each in batches]) ** 2
    return float(squares.mean()), float(squares.std() / math.sqrt(len(squares)))


def scene_of(
    sizes: NDArray[np.int64], space: Space, expected: Expected, *, pooled: bool = False
) -> Scene:
    """What is expected in one way of the outcomes of a design."""
    return Scene(represent(sizes, pooled=pooled), space, expected.kinds(space))


def variance_in(scene: Scene, parameters: Parameters) -> float:
    """The variance under the one expectation of a scene."""
    [found] = scene.variance(parameters)
    return float(found)


CASES = [
    # Space, expectation, floor (None: uniform), sigma, pooled, levels.
    (PAPER, Expected(0.5, 2.5, 0.9), 0.03, 8.0, False, 12),
    (PAPER, Expected(-1.0, 2.0, 0.5), 0.02, 3.0, True, 12),
    (PAPER, Expected(3.0, 1.0, 0.0), 0.1, 3.0, False, 4),
    (PAPER, Expected(0.5, 2.5, 0.9), None, math.inf, False, 3),
    (Space.binary(), Expected.binary(0.1, 0.2), 0.2, 4.0, False, 2),
    (Space((0.0, 1.0, 5.0), "nearest"), Expected(1.0, 2.0, 0.4), 0.1, 5.0, True, 3),
]


@pytest.mark.parametrize("case", CASES)
def test_prediction_is_the_variance_of_the_mechanism(
    case: tuple[Space, Expected, float | None, float, bool, int],
) -> None:
    """Within 2 % and what 1e-9 of all runs exceed; a lambda off by a tenth is rejected."""
    space, expected, floor, sigma, pooled, levels = case
    # Pooled predictions are for many clusters: few of them lie closer to their own histogram.
    sizes = np.array([[12, 20], [30, 25], [60, 40]]) // (6 if pooled else 1)
    sizes = np.repeat(sizes, 8, axis=0) if pooled else sizes
    parameters = calibrate(
        space.coarse(levels), epsilon=Fraction(3), delta=ZERO, floor=floor, sigma=sigma
    )
    scene = scene_of(sizes, space, expected, pooled=pooled)
    measured, error = variance_of(Mechanism(sizes, space, parameters, expected, pooled), 7)
    capacity = ALARM * error + 0.02 * measured
    assert abs(variance_in(scene, parameters) - measured) < capacity
    wrong = replace(parameters, replaced=min(ONE - 1, int(parameters.replaced * 1.3)))
    assert abs(variance_in(scene, wrong) - measured) > capacity


def test_uniform_prior_is_predicted_exactly() -> None:
    """docs/theory/trials.md#the-uniform-prior, by group; and the binary one of one cluster."""
    expected = Expected(0.5, 2.5, 0.5)
    parameters = calibrate(PAPER.coarse(12), epsilon=Fraction(2), delta=ZERO)
    kinds = expected.kinds(PAPER)
    first, second = kinds.levels @ PAPER.array, kinds.levels @ PAPER.array**2
    added = with_uniform_prior(first, second, PAPER.array, parameters.lam)
    unit = float(kinds.share @ (added + second - first**2))
    for pooled in (False, True):
        scene = scene_of(SIZES, PAPER, expected, pooled=pooled)
        truth = group_weights(SIZES).sum() * unit
        assert math.isclose(variance_in(scene, parameters), truth, rel_tol=1e-12)
    binary = calibrate((0, 1), epsilon=Fraction(1), delta=ZERO)
    scene = scene_of(np.array([[30, 70]]), Space.binary(), Expected.binary(0.3))
    added_one = 100 / (30 * 70) * binary.lam / 2 * (1 - binary.lam / 2) / (1 - binary.lam) ** 2
    assert (scene.variance(binary) - scene.sampling).tolist() == [
        pytest.approx(added_one, rel=1e-9)
    ]


def test_rounding_to_fewer_levels_is_predicted() -> None:
    """Variance that rounding adds, against every level and both neighbours by hand."""
    space = Space((0.0, 1.0, 4.0, 6.0))
    expected = Expected(2.0, 2.0, 0.3)
    scene = scene_of(SIZES, space, expected)
    kinds = expected.kinds(space)
    share = kinds.share @ kinds.levels
    truth = share[1] * 1 * 5 + share[2] * 4 * 2
    assert scene.distribution((0, 3)).rounding.tolist() == [pytest.approx(truth, rel=1e-9)]
    assert scene.distribution((0, 1, 2, 3)).rounding.tolist() == [0]


@given(
    st.integers(2, 6).flatmap(
        lambda k: st.tuples(
            st.lists(st.floats(-5, 5), min_size=k, max_size=k, unique=True),
            st.lists(st.floats(0, 1), min_size=k, max_size=k).filter(lambda x: sum(x) > 0.01),
            st.lists(st.floats(0, 1), min_size=k, max_size=k).filter(lambda x: sum(x) > 0.01),
        )
    ),
    st.floats(0.01, 1),
    st.floats(0.05, 10),
)
def test_no_prior_adds_less_than_uniform_at_the_same_loss(
    drawn: tuple[list[float], list[float], list[float]], part: float, epsilon: float
) -> None:
    """For every prior and all outcomes, on the same levels with delta = 0: proof in `choose`."""
    levels, shape, outcomes = (np.array(each) for each in drawn)
    levels.sort()
    size = len(levels)
    prior = part / size + (1 - part) * shape / shape.sum()
    counts = outcomes / outcomes.sum()

    def added(q: Floats) -> float:
        lam = 1 / (1 + q.min() * math.expm1(epsilon))
        return float(given_prior(counts[None], q[None], levels, lam)[0])

    uniform = np.full(size, 1 / size)
    assert added(prior) >= added(uniform) * (1 - 1e-9)


def test_fewer_levels_where_the_loss_is_small() -> None:
    """Two levels at first, all of them at last, and the ratio says what that is worth."""
    used = [
        choose(SIZES, PAPER, epsilon=Fraction(eps), delta=ZERO, pooled=False).parameters.levels
        for eps in (Fraction(1, 2), 1, 2, 4, 8)
    ]
    assert used[0] == 2
    assert used[-1] == 12
    assert used == sorted(used)
    small = choose(SIZES, PAPER, epsilon=Fraction(1, 2), delta=ZERO, pooled=False)
    assert small.ratio < 0.15
    assert small.standard_error[1] ** 2 <= small.ratio * small.uniform[1] ** 2 * 1.3


@pytest.mark.parametrize("pooled", [False, True])
def test_the_choice_is_the_best_uniform_prior_for_what_is_expected(pooled: bool) -> None:
    """With one expectation: no number of levels is better."""
    expected = Expected(2.0, 1.0, 0.3)
    scene = scene_of(SIZES, PAPER, expected, pooled=pooled)
    for epsilon in (Fraction(1, 2), Fraction(3)):
        found = choose(SIZES, PAPER, epsilon=epsilon, delta=ZERO, pooled=pooled, expected=expected)
        others = [
            variance_in(scene, calibrate(PAPER.coarse(number), epsilon=epsilon, delta=ZERO))
            for number in (2, 3, 4, 5, 6, 8, 11, 12)
        ]
        assert math.isclose(found.standard_error[0] ** 2, min(others), rel_tol=1e-12)


def test_histograms_are_chosen_where_they_pay_and_then_they_do() -> None:
    """With a delta so large that keeping is nearly free: measured, not only predicted."""
    sizes, expected, delta = np.array([[200, 200]] * 3), Expected(0.5, 2.5, 0.99), Fraction(3, 10)
    found = choose(sizes, PAPER, epsilon=Fraction(2), delta=delta, pooled=False, expected=expected)
    assert found.parameters.weight > 0
    assert found.parameters.epsilon(delta) <= 2
    assert "histograms" in found.reason
    mechanism = Mechanism(sizes, PAPER, found.parameters, expected, pooled=False)
    measured, error = variance_of(mechanism, 3, runs=2000)
    plain = choose(
        sizes, PAPER, epsilon=Fraction(2), delta=delta, pooled=False, expected=expected,
        sigma=math.inf,
    )  # fmt: skip
    assert plain.parameters.weight == 0
    assert measured + ALARM * error < (1 - TOLERANCE) * plain.standard_error[0] ** 2


@given(
    st.integers(2, 9),
    st.fractions(Fraction(1, 10), 8),
    st.sampled_from([ZERO, Fraction(1, 10**6), Fraction(1, 10)]),
    st.sampled_from([None, 0.01, 0.2]),
    st.sampled_from([None, 40.0, math.inf]),
    st.booleans(),
)
def test_no_choice_costs_more_than_was_asked(
    size: int,
    epsilon: Fraction,
    delta: Fraction,
    floor: float | None,
    sigma: float | None,
    pooled: bool,
) -> None:
    """Exact loss at most epsilon; what is given is used; twice the same."""
    if floor is not None and sigma == math.inf:
        floor = None
    if floor is not None:
        floor = min(floor, 1 / (size + 1))
    if sigma == 40.0 and epsilon < Fraction(1, 5):
        epsilon = Fraction(1, 5)
    arguments = {"epsilon": epsilon, "delta": delta, "pooled": pooled}
    expected = Expected(size / 2, size / 5, 0.5)
    space = Space.counts(0, size)
    first, second = (
        choose(
            np.array([[40, 30, 20], [9, 9, 7]]), space, floor=floor, sigma=sigma,
            expected=expected, levels="all", **arguments,
        )
        for _ in range(2)
    )  # fmt: skip
    assert first == second
    found = first.parameters
    assert found.epsilon(delta) <= epsilon
    assert found.levels == size + 1
    if floor is not None:
        assert found.floor <= floor * ONE
        assert found.weight > 0
    if sigma is not None and math.isfinite(sigma):
        assert math.isclose(found.sigma, sigma, rel_tol=1e-3)
        assert found.sigma >= sigma


def test_many_clusters_are_a_few_sizes() -> None:
    """Weights stay; a prediction changes little if sizes stand for others."""
    random = np.random.default_rng(1)
    sizes = random.integers(5, 500, (2000, 2))
    groups = represent(sizes, pooled=False)
    assert len(groups.size) == 6
    assert math.isclose(groups.total, group_weights(sizes).sum(), rel_tol=1e-12)
    parameters = calibrate(PAPER.coarse(12), epsilon=Fraction(4), delta=ZERO, floor=0.02, sigma=5.0)
    expected = Expected(0.5, 2.5, 0.6)
    size, place = np.unique(sizes, return_inverse=True)
    every = np.bincount(place.ravel(), group_weights(sizes).ravel()).astype(np.float64)
    kinds = expected.kinds(PAPER)
    [exact] = Scene(replace(groups, size=size, weight=every), PAPER, kinds).variance(parameters)
    [near] = Scene(groups, PAPER, kinds).variance(parameters)
    assert math.isclose(near, exact, rel_tol=0.03)
    pooled = represent(sizes, pooled=True)
    assert pooled.size.tolist() == sizes.sum(axis=0).tolist()
    assert math.isclose(pooled.total, groups.total, rel_tol=1e-12)


def test_kinds_have_the_expected_moments() -> None:
    """Mean, variance and the part between clusters, on fine levels."""
    space = Space.bins(-10, 10, 201)
    for between in (0.0, 0.3, 0.9):
        kinds = Expected(1.0, 1.5, between).kinds(space)
        means = kinds.levels @ space.array
        inside = kinds.levels @ space.array**2 - means**2
        assert math.isclose(kinds.share @ means, 1.0, rel_tol=1e-6)
        middle = float(kinds.share @ means)
        apart = float(kinds.share @ (means - middle) ** 2)
        assert math.isclose(apart, between * 2.25, rel_tol=1e-3, abs_tol=1e-9)
        assert math.isclose(kinds.share @ inside, (1 - between) * 2.25, rel_tol=2e-3, abs_tol=1e-3)
    for rate, between in itertools.product((0.05, 0.5, 0.9), (0.0, 0.4, 1.0)):
        kinds = Expected.binary(rate, between).kinds(Space.binary())
        rates = kinds.levels[:, 1]
        assert math.isclose(kinds.share @ rates, rate)
        apart = float(kinds.share @ (rates - rate) ** 2)
        assert math.isclose(apart, between * rate * (1 - rate), abs_tol=1e-12)
    several = family(PAPER)
    assert np.allclose(several.levels.sum(axis=1), 1)
    assert np.allclose(np.add.reduceat(several.share, several.first), 1)


@loop_over(
    ("changed", "part"),
    [
        ({"sizes": np.array([[0, 3]])}, "above 0"),
        ({"sizes": np.array([3, 3])}, "clusters x arms"),
        ({"sizes": np.array([[0.5, 3]])}, "whole numbers"),
        ({"levels": "some"}, "all, auto"),
        ({"levels": True}, "a whole number"),
        ({"levels": 13}, "2 to 12"),
        ({"sigma": 2.0}, "below epsilon"),
        ({"sigma": 1.0}, "below epsilon"),
        ({"sigma": math.nan}, "finite"),
        ({"sigma": "wide"}, "finite"),
        ({"sigma": -1.0}, "above 0"),
        ({"floor": -0.1}, "above 0"),
        ({"floor": 0.1, "sigma": math.inf}, "floor or infinite noise"),
        ({"epsilon": Fraction(1, 10**12)}, "some outcomes are kept"),
        ({"expected": Expected(40.0, 1.0)}, "from -5 to 6"),
        ({"expected": Expected.binary(0.5)}, "two levels"),
    ],
)
def test_unusable_arguments_are_explained(changed: dict[str, object], part: str) -> None:
    """What was given, what is allowed."""
    arguments: dict[str, object] = {
        "sizes": SIZES, "space": PAPER, "epsilon": Fraction(1), "delta": ZERO, "pooled": False,
        **changed,
    }  # fmt: skip
    with pytest.raises(InputError, match=part):
        choose(**arguments)


@pytest.mark.parametrize(
    "numbers",
    [(0.0, -1.0), (0.0, 0.0), (0.0, 1.0, 1.5), (math.nan, 1.0), (0.0, 1.0, 0.0, "flat"), (1, True)],
)
def test_unusable_expectations_are_explained(numbers: tuple[float, ...]) -> None:
    """Not a distribution."""
    with pytest.raises(InputError):
        Expected(*numbers)
    for rate in (0.0, 1.0, 2.0, math.nan, "half"):
        with pytest.raises(InputError):
            Expected.binary(rate)
