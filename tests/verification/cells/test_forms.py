"""Formulas of the second opinion against enumeration, other libraries, and the planner's."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import shoal
from shoal.theory import gaussian, joint, variance
from shoal.verification.cells import gaussian as verify_gaussian
from shoal.verification.cells import mechanism as verify_mechanism
from shoal.verification.cells import optimal as verify_optimal
from shoal.verification.cells.design import Design
from shoal.verification.cells.errors import LAPLACE_QUADRATIC, Errors
from shoal.verification.cells.facts import Facts
from shoal.verification.cells.losses import Losses
from shoal.verification.cells.members import MemberLosses
from shoal.verification.cells.statistics import moments_rate, variance_errs, variance_moves
from tests.support import occupancies

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.oracle

DIGITS = cast("Any", mpmath.mp).clone()
DIGITS.dps = 400
GRID = np.linspace(-1, 1, 21)
SCALES = st.floats(1e-4, 1e3)


def of_plan(plan: shoal.Plan) -> Design:
    """The second opinion's design of a plan."""
    document = plan.to_document()
    facts = Facts.of({"plan": document})
    mechanism = verify_mechanism.read(document, facts)
    return Design.of(facts, mechanism, verify_mechanism.arrays_of(mechanism, facts))


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 12))
def test_variance_moves_by_enumeration(part: int, others: int, gone: int) -> None:
    """docs/theory/variance.md: no data set moves further, and one moves as far."""
    total = part + others + gone
    w, rest = part / total, others / total
    found = float(variance_moves(part, part + others, total))
    # Variances over U^2/4 of values z in -1..1: the user's mean z and mean square q, others' sum a.
    z, q, a = (np.array(each) for each in zip(*(
        (z, q, a) for z in GRID for q in (z * z, 1.0) for a in GRID * rest
    ), strict=True))  # fmt: skip
    spread = w * q - (w * z + a) ** 2
    most = max(np.ptp(spread[a == each]) for each in set(a.tolist()))
    assert most <= found + 1e-12
    # The user's best two values between places of the grid are missed by a twentieth at most.
    assert most >= found - w * 0.05**2 - 1e-12
    assert found == pytest.approx(
        float(variance.mass_sensitivity(np.array([w]), np.array([w + rest]))[0]), rel=2e-6
    )


@given(st.integers(1, 20), st.integers(0, 20))
def test_variance_errs_by_enumeration(gone: int, stay: int) -> None:
    """Missing mass in the middle: the estimate plus its middle is never further off, and is so."""
    d = gone / (gone + stay)
    bias, middle = variance_errs(Fraction(gone, gone + stay), Fraction(7))
    p, q = np.meshgrid(GRID, GRID)
    # The part that stays has mean p and squares m; the missing one mean q and squares from q^2.
    off = [
        d * square - (d * q + (1 - d) * p) ** 2 + ((1 - d) * p) ** 2 - float(middle)
        for square in (q**2, np.ones_like(q))
    ]
    most = float(np.abs(off).max())
    assert most <= float(bias) + 1e-12
    assert most >= float(bias) - 0.05
    if d <= 1 / 2:
        assert most == pytest.approx(float(bias))


@given(st.integers(0, 20), st.integers(1, 20))
def test_variance_moved_mass_is_a_user(moved: int, others: int) -> None:
    """docs/theory/variance.md: V of the mass by which weights and shares differ."""
    distance = Fraction(moved, moved + others)
    bias, middle = variance_errs(Fraction(0), distance)
    assert bias == variance_moves(moved, moved + others, moved + others)
    assert middle == 0


@given(SCALES, st.floats(1e-3, 3))
def test_moments_rate_is_the_most_over_pairs(first: float, ratio: float) -> None:
    """docs/theory/variance.md: J, by trying pairs of points of the parabola."""
    exact = moments_rate(Fraction(first), Fraction(first * ratio))
    y = np.linspace(-0.5, 0.5, 201)
    one, other = np.meshgrid(y, y)
    apart, squares = np.abs(one - other), np.abs(one**2 - other**2)
    most = float((apart / first + squares / (first * ratio)).max())
    assert most <= float(exact) * (1 + 1e-12)
    assert most >= float(exact) * (1 - 1e-2)
    assert float(exact) == pytest.approx(float(joint.loss(first, first * ratio)), rel=1e-14)


@given(SCALES, st.floats(1e-3, 3))
def test_gaussian_moments_rate_is_the_most_over_pairs(first: float, ratio: float) -> None:
    """docs/theory/gaussian.md: R, by trying pairs, and against the planner's closed form."""
    exact = verify_gaussian.moments_rate(Fraction(first), Fraction(first * ratio))
    d = np.linspace(0, 1, 2001)
    most = float(((d / first) ** 2 + (d * (1 - d) / (first * ratio)) ** 2).max())
    assert most <= float(exact) * (1 + 1e-12)
    assert most >= float(exact) * (1 - 1e-5)
    assert float(exact) == pytest.approx(
        float(gaussian.joint_rate(first, first * ratio)), rel=1e-12
    )


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 3.0, 40.0, 1e4, 1e6])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-40, 1e-100])
def test_delta_against_many_digits(epsilon: float, delta: float) -> None:
    """Balle and Wang's formula with mpmath; a fine lattice adds nothing."""
    rho = gaussian.rho_of(epsilon, delta)
    own = verify_gaussian.delta_at(Fraction(epsilon), Fraction(rho), 50, 500)
    e, m = DIGITS.mpf(epsilon), DIGITS.sqrt(2 * DIGITS.mpf(rho))
    wanted = DIGITS.ncdf(m / 2 - e / m) - DIGITS.exp(e) * DIGITS.ncdf(-m / 2 - e / m)
    found = DIGITS.mpf(own.numerator) / own.denominator
    assert DIGITS.mpf(10) ** -30 > abs(found / wanted - 1)
    assert float(own) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(("rho", "numbers", "bits"), [(0.02, 47, 20), (5.0, 1, 22), (300.0, 9, 30)])
def test_the_lattice_adds_what_theory_says(rho: float, numbers: int, bits: int) -> None:
    """docs/theory/gaussian.md: near (k + rho)/(12 4^j), and as the planner adds."""
    coarse, fine = (
        verify_gaussian.delta_at(Fraction(1), Fraction(rho), numbers, each) for each in (bits, 500)
    )
    added = float(coarse - fine)
    assert added == pytest.approx((numbers + rho) / (12 * 4**bits), rel=1e-3)
    assert added == pytest.approx(gaussian.lattice_correction(rho, numbers, bits), rel=1e-6)


def test_what_is_never_planned_proves_nothing() -> None:
    """Losses and lattices beyond any plan have a delta of 1, without long computations."""
    one = Fraction(1)
    assert verify_gaussian.delta_at(Fraction(10**40), one, 1, 26) == 1
    assert verify_gaussian.delta_at(one, Fraction(10**40), 1, 26) == 1
    assert verify_gaussian.delta_at(one, one, 1, 19) == 1


@given(st.fractions(0, 10**30))
def test_roots_are_rounded_upwards(square: Fraction) -> None:
    """The least whole number whose square is no less."""
    root = verify_gaussian.ceil_root(square)
    assert root**2 >= square
    assert root == 0 or (root - 1) ** 2 < square


@pytest.mark.parametrize("beta", [0.5, 0.05, 0.025, 1e-9])
@pytest.mark.parametrize("bits", [20, 26, 40])
def test_gaussian_quantiles(beta: float, bits: int) -> None:
    """SciPy's normal tail at half a step beyond; the planner's is the same, or a little more."""
    found = verify_gaussian.quantile(2.0**bits, beta)
    log_tails = [
        math.log(2) + float(stats.norm.logsf((z + 0.5) / 2.0**bits)) for z in (found, found - 1)
    ]
    assert log_tails[0] <= math.log(beta) + 1e-10
    assert log_tails[1] >= math.log(beta) - 1e-10
    assert 0 <= gaussian.tail_quantile(2.0**bits, beta) - found <= 1 + 2e-12 * 2.0**bits


def test_constants_of_noise() -> None:
    """E|X|, E|X^2 - 1| and E|X^2 - 2| by quadrature."""
    x = np.linspace(-60, 60, 2_000_001)
    normal, laplace = np.exp(-x * x / 2) / math.sqrt(2 * math.pi), np.exp(-np.abs(x)) / 2
    for wanted, found in (
        (np.abs(x) * normal, verify_gaussian.MEAN_ABSOLUTE),
        (np.abs(x * x - 1) * normal, verify_gaussian.MEAN_QUADRATIC),
        (np.abs(x * x - 2) * laplace, LAPLACE_QUADRATIC),
    ):
        assert float(np.trapezoid(wanted, x)) == pytest.approx(found, rel=1e-7)


def test_the_cheapest_ratio_of_moments() -> None:
    """The least of J(1, r) (5 + 4 r), by trying ratios; never above."""
    ratio = np.geomspace(0.01, 3, 200_001)
    cost = joint.loss(1.0, ratio) * (5 + 4 * ratio)
    assert float(cost.min()) * (1 + 1e-14) >= verify_optimal._JOINT_COST
    assert float(cost.min()) == pytest.approx(verify_optimal._JOINT_COST, rel=1e-9)


@pytest.mark.parametrize("method", ["balanced", "uniform", "clip_user", "optimal"])
@pytest.mark.parametrize("delta", ["0", "1e-5"])
@pytest.mark.parametrize(
    "statistics", [["mean"], ["variance"], ["mean", "variance"], ["share_above(3)", "variance"]]
)
@settings(max_examples=15)
@given(occupancy=occupancies.small)
def test_losses_and_errors_agree_with_the_planner(
    method: str, delta: str, statistics: list[str], occupancy: shoal.Occupancy
) -> None:
    """G-INDEPENDENT: two ways to the same losses, biases, errors and lower bounds."""
    if method in {"clip_user", "optimal"}:
        delta = "0"
    plan = shoal.plan(
        occupancy, bounds=(0, 10), epsilon=20, method=method, statistics=statistics,
        uninformative="keep", delta=delta,
    )  # fmt: skip
    own, errors = Losses(of_plan(plan)), Errors(of_plan(plan))
    assert own.holds(plan.exact_epsilon)[0]
    assert not own.holds(plan.exact_epsilon * Fraction(999, 1000))[0]
    assert not own.holds(plan.exact_epsilon * Fraction(1001, 1000))[0]
    stated = plan.losses.largest(plan.relative_scale)
    assert 0 <= stated - own.largest <= stated * Fraction(1, 10**5)
    np.testing.assert_allclose(errors.bias_bounds(), plan.bias_bound, rtol=1e-10)
    np.testing.assert_allclose(errors.worst_case(), plan.worst_case_error, rtol=1e-10)
    if not plan.gaussian:
        least = errors.least(plan.exact_epsilon)
        np.testing.assert_allclose(least, plan.lower_bound, rtol=1e-10)


def _optimal(part: NDArray[np.int64]) -> verify_mechanism.Mechanism:
    return verify_mechanism.Mechanism(
        "optimal",
        shares=False,
        settings={},
        parameters={},
        of_members={"part": part},
        selection_scale=[],
    )


def _weighed(
    occupancy: shoal.Occupancy, statistics: list[str], seed: int, *, joint: bool
) -> Errors:
    """Errors of some plan that weighs users: parts and scales by chance."""
    rng = np.random.default_rng(seed)
    plan = shoal.plan(
        occupancy, bounds=(0, 10), epsilon=1, statistics=statistics, uninformative="keep",
        method="uniform",
    )  # fmt: skip
    facts = Facts.of({"plan": plan.to_document()})
    size = len(facts.statistics) * len(facts.released)
    scale = [Fraction(each) for each in rng.uniform(0.001, 0.3, size)]
    facts = replace(facts, joint=joint, scale=scale)
    part = rng.integers(0, 2**16, len(facts.member), endpoint=True)
    part = np.where(rng.random(len(part)) < rng.choice([0.0, 0.3, 1.0]), 2**16, part)
    return Errors(Design.of(facts, _optimal(part), []))


@settings(max_examples=200)
@given(
    occupancy=occupancies.small,
    way=st.sampled_from(
        [*product((["mean"], ["variance"], ["mean", "variance"],
                   ["mean", "share_above(3)"], ["share_above(3)", "variance", "mean"]), (False,)),
         (["mean", "variance"], True), (["share_above(3)", "variance", "mean"], True)]
    ),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_no_plan_beats_a_proof(occupancy: shoal.Occupancy, way: Any, seed: int) -> None:  # noqa: ANN401
    """docs/theory/optimal.md#the-dual-bound: whatever the plan, its bound is below its loss."""
    statistics, together = way
    errors = _weighed(occupancy, statistics, seed, joint=together)
    facts = errors.design.facts
    lost = np.bincount(facts.member_user, MemberLosses(errors).all, minlength=occupancy.n_users)
    rng = np.random.default_rng([seed, 1])
    dual = rng.exponential(size=occupancy.n_users) ** rng.choice([0, 1, 4])
    dual = np.where(rng.random(len(dual)) < 0.2, 0.0, dual)
    for each in (dual, (lost == lost.max()).astype(float)):
        bound = verify_optimal._Proof(errors, each).bound(verify_optimal._without_rounding(errors))
        assert bound <= float(lost.max()) * (1 + 1e-9)


def test_a_proof_is_attained() -> None:
    """docs/theory/limits.md#means: in one cell the best thresholds cost exactly the bound."""
    counts = [9, 5, 4, 4, 3, 2, 1, 1, 1]
    occupancy = shoal.Occupancy.from_counts(range(9), ["x"] * 9, counts)
    plan = shoal.plan(
        occupancy, bounds=(0, 1), epsilon=0.7, method="worst_case_optimal", uninformative="keep"
    )
    threshold = int(plan.parameters["threshold"][0])
    part = np.minimum(1, threshold / occupancy.count) * 2**16
    facts = Facts.of({"plan": plan.to_document()})
    errors = Errors(Design.of(facts, _optimal(part.astype(np.int64)), []))
    error = verify_optimal._without_rounding(errors)
    # Whoever is above the threshold has dual variable 1; whoever is at it, what makes 2/epsilon in
    # sum.
    above, equal = occupancy.count > threshold, occupancy.count == threshold
    dual = above + equal * (2 / 0.7 - above.sum()) / equal.sum()
    bound = verify_optimal._Proof(errors, dual).bound(error)
    assert bound == pytest.approx(0.7, rel=1e-4)
    assert bound <= float(Losses(errors.design).largest)
    for seed in range(20):
        other = dual * np.random.default_rng(seed).uniform(0.5, 1.5, len(dual))
        assert verify_optimal._Proof(errors, other).bound(error) <= bound * (1 + 1e-12)


def test_coarse_ticks_need_a_wider_margin() -> None:
    """Rounded means of capped users leave the parabola's hull: few ticks cost them more."""
    occupancy = shoal.Occupancy.from_counts(range(4), ["x"] * 4, [1000, 100, 100, 100])
    plan = shoal.plan(
        occupancy, bounds=(0, 1), epsilon=1, method="clip_user", statistics=["variance"],
        uninformative="keep",
    )  # fmt: skip
    design = of_plan(plan)
    mechanism = replace(design.mechanism, parameters={"cap": [100]})
    fine, coarse = (
        Losses(Design.of(replace(design.facts, tick_bits=bits), mechanism, [])).largest
        for bits in (20, 1)
    )
    # By enumeration one tick bit moves the variance by 0.7577 where 0.75 would be exact.
    assert coarse >= fine * Fraction(7577, 7501)
