"""The closed forms of the second opinion on trials: brute force, matrices, mpmath and SciPy."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shoal.privacy.noise import Simulated
from shoal.trials import horvitz_thompson, normal_laplace, spread
from shoal.verification.trials import privacy as verify_privacy
from shoal.verification.trials import spread as verify_spread
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.horvitz_thompson import HorvitzThompson

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.oracle

ONE = verify_privacy.ONE
DIGITS = cast("Any", mpmath.mp).clone()
DIGITS.dps = 80


@given(st.integers(1, 2**64), st.integers(1, 2**70))
def test_logarithms_are_rounded_outwards(above: int, below: int) -> None:
    """Never below ln(1 + x), and by less than a part of 1e-18, against DIGITS."""
    value = Fraction(above, below)
    true = DIGITS.log(1 + DIGITS.mpf(above) / below)
    found = verify_privacy.log1p_up(value)
    ratio = DIGITS.mpf(found.numerator) / found.denominator / true
    assert 1 <= ratio <= 1 + DIGITS.mpf(10) ** -18


@given(st.integers(1, ONE - 1), st.integers(1, ONE // 3), st.fractions(0, Fraction(9, 10)))
def test_the_loss_of_a_response_is_the_least(replaced: int, floor: int, delta: Fraction) -> None:
    """The worst prior's hockey-stick divergence is delta at the loss, and more just below it."""
    keep, lam = Fraction(ONE - replaced, ONE), Fraction(replaced, ONE)
    # The outcome is on the level with the floor, its neighbour on the one with the rest.
    prior = [Fraction(floor, ONE), Fraction(floor, ONE), 1 - Fraction(2 * floor, ONE)]
    here = [lam * q + keep * (at == 0) for at, q in enumerate(prior)]
    there = [lam * q + keep * (at == 1) for at, q in enumerate(prior)]
    loss = verify_privacy.response_loss(replaced, floor, delta)

    def apart(epsilon: Fraction) -> Any:  # noqa: ANN401
        times = DIGITS.exp(DIGITS.mpf(epsilon.numerator) / epsilon.denominator)
        parts = [DIGITS.mpf(p.numerator) / p.denominator for p in (*here, *there)]
        return sum(max(p - times * q, 0) for p, q in zip(parts[:3], parts[3:], strict=True))

    most = DIGITS.mpf(delta.numerator) / delta.denominator
    assert apart(loss) <= most
    assert loss == 0 or apart(loss * (1 - Fraction(1, 10**12))) > most


class _Nothing(Simulated):
    """Noise that is none: what is released are the steps themselves."""

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The steps."""
        assert lattice_bits > draw == 0
        return list(steps)


def _facts(sizes: list[list[int]], levels: tuple[float, ...], mechanism: str) -> Facts:
    arms: list[object] = list(range(len(sizes[0])))
    zero = Fraction(0)
    return Facts(
        levels=np.array(levels), sizes=np.array(sizes), arms=arms, rising=True, named=False,
        mechanism=mechanism, delta=zero, loss=zero, confidence=0.95,
    )  # fmt: skip


@pytest.mark.parametrize(
    "sizes",
    [[[2, 3], [3, 2]], [[1, 3]], [[3, 1], [2, 2]], [[1, 1], [2, 1]], [[4, 2, 1]], [[2, 2, 3]]],
    ids=str,
)
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 4)])
def test_moved_steps_are_those_of_the_worst_outcome(
    sizes: list[list[int]], share: Fraction
) -> None:
    """All changes of one outcome in all data sets: never more steps, and the most is reached."""
    levels = (-1.0, 0.5, 3.0)
    plan = horvitz_thompson.NoisyHorvitzThompson.plan(np.array(sizes), levels, Fraction(1), share)
    facts = _facts(sizes, levels, "noisy_horvitz_thompson")
    again = HorvitzThompson(
        facts, plan.weight, plan.spread_weight, plan.lattice_bits, [], same=True
    )
    flat = np.array(sizes).ravel()
    options = [
        [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)] for n in flat.tolist()
    ]
    shape = (*np.array(sizes).shape, len(levels))
    drawn: dict[Any, NDArray[np.int64]] = {
        every: np.array(plan.draw(np.array(every).reshape(shape), _Nothing(0)))
        for every in itertools.product(*options)
    }
    most = 0
    for every, steps in drawn.items():
        for group, (low, high) in itertools.product(range(len(flat)), ((0, 1), (0, 2), (1, 2))):
            other = [list(bins) for bins in every]
            other[group][low] -= 1
            other[group][high] += 1
            if other[group][low] >= 0:
                moved = np.abs(steps - drawn[tuple(map(tuple, other))]).sum()
                most = max(most, int(moved))
    assert len(next(iter(drawn.values()))) == again.count
    # Rounding of each number may fall short by a step.
    assert again.moved - again.count <= most <= again.moved


@given(st.lists(st.integers(1, 60), min_size=3, max_size=5))
def test_the_choice_of_numbers_is_the_mechanism_s(row: list[int]) -> None:
    """Differences or means, and what each weighs, for a control and two to four arms."""
    direct, factor = horvitz_thompson.shared(np.array([row]))
    facts = _facts([row], (0.0, 1.0), "noisy_horvitz_thompson")
    again = HorvitzThompson(facts, 1000, 0, 20, [], same=True).factor
    assert (again[:, 0] == 0).tolist() == direct.tolist()
    assert again[0, 1:].tolist() == factor[0, 1:].tolist()


@pytest.mark.parametrize("degrees", [1.0, 1.3, 2.0, 7.7, 100.0, 1e4, 1e8, math.inf])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_student_against_scipy(degrees: float, confidence: float) -> None:
    """Half of a t interval."""
    expected = float(stats.t.ppf((1 + confidence) / 2, degrees))
    assert verify_spread.student(degrees, confidence) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("parts", [(0, 2, 1), (0.1, 1, 1), (1, 1, 3), (5, 1, 1.7), (1, 1, 1e5)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_normal_plus_laplace_by_two_ways(
    parts: tuple[float, float, float], confidence: float
) -> None:
    """A mixture of normal ones here, a Fourier integral there; Laplace alone is known."""
    found = verify_spread.normal_laplace(confidence, *parts)
    assert found == pytest.approx(normal_laplace.quantile(confidence, *parts), rel=1e-6)
    alone = verify_spread.normal_laplace(confidence, 0.0, 2.0, 1.0)
    assert alone == pytest.approx(-math.log(1 - confidence), rel=1e-12)


@pytest.mark.parametrize("off", [-1e-10, -1e-12, -1e-16, 0.0, 1e-16, 1e-12, 1e-9, 0.5])
@pytest.mark.parametrize("others", [(1.0,), (1.0, 1.0, 1.0), (0.3, 0.7), (0.1,) * 10])
def test_half_of_the_weight_is_the_limit(others: tuple[float, ...], off: float) -> None:
    """G-VERIFY: w^2 (D - mean of the others)^2 in both programs, and 0 where these are equal."""
    weight = np.array([sum(others) * (1 + off), *others])
    value, ones = np.cos(np.arange(len(weight))), np.ones(len(weight))
    mean = value[1:] @ weight[1:] / sum(others)
    alike = np.append(mean, value[1:])
    variances = (
        (
            spread.between(weight, each, ones).variance,
            verify_spread.between(weight, each, ones)[0],
        )
        for each in (value, alike)
    )
    expected = weight[0] ** 2 * (value[0] - mean) ** 2
    assert next(variances) == pytest.approx((expected, expected), rel=1e-7)
    assert max(next(variances)) <= 1e-30 * weight[0] ** 2


@given(
    st.lists(st.floats(0.01, 1.0), min_size=3, max_size=8),
    st.lists(st.floats(0.1, 5.0), min_size=8, max_size=8),
)
def test_the_form_of_clusters_by_its_matrix(weights: list[float], scales: list[float]) -> None:
    """Its diagonal is w^2, so it is unbiased; its degrees are those of traces of the matrix."""
    weight = np.array(weights)
    if 2 * weight.max() > 0.999 * weight.sum():
        return
    scale, p = np.array(scales[: len(weight)]), weight / weight.sum()
    b = weight**2 / (1 - 2 * p) / (1 + (p**2 / (1 - 2 * p)).sum())
    off = np.eye(len(p)) - p[:, None]
    matrix = off @ np.diag(b) @ off.T
    value = np.sin(np.arange(len(p)))
    variance, degrees = verify_spread.between(weight, value, scale)
    assert np.diag(matrix) == pytest.approx(weight**2, rel=1e-9)
    assert variance == pytest.approx(float(value @ matrix @ value), rel=1e-9)
    forms = [matrix * scale, matrix]
    least = min(np.trace(form) ** 2 / np.trace(form @ form) for form in forms)
    assert degrees == pytest.approx(max(1.0, least), rel=1e-9)
