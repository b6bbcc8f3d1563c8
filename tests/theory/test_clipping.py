"""Sharp tail constants: against enumeration, linear programs and simulation-free quadrature."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from shoal.errors import InputError
from shoal.theory import clipping
from shoal.theory.clipping import Moment
from tests.support.loop import loop_over

ORDERS = st.sampled_from([2.0, 2.5, 3.0, 4.0, 8.0, 20.0])
MARGINS = st.floats(0.05, 20)


def two_points(order: float, far: float, p: float) -> tuple[np.ndarray, np.ndarray, Moment]:
    """Mean 0: far with probability p, else -p far/(1-p); and its moment of an order."""
    values = np.array([far, -p * far / (1 - p)])
    chances = np.array([p, 1 - p])
    size = float((np.abs(values) ** order @ chances) ** (1 / order))
    return values, chances, Moment(order, size)


@given(ORDERS, st.floats(0.01, 50), st.floats(0.001, 0.999), st.floats(0, 30))
def test_two_point_distributions_never_exceed_the_bounds(
    order: float, far: float, p: float, margin: float
) -> None:
    """Every bound holds for every two-point distribution, at its own moment."""
    values, chances, moment = two_points(order, far, p)
    up, size = 1 + 1e-9, (moment,)
    distance = np.abs(values)
    assert np.maximum(distance - margin, 0) @ chances <= clipping.excess(size, margin) * up + 1e-12
    squares = np.maximum(distance - margin, 0) ** 2 @ chances
    assert squares <= clipping.excess_square(size, margin) * up + 1e-12
    assert np.maximum(values - margin, 0) @ chances <= clipping.one_sided(size, margin) * up + 1e-12
    assert (distance > margin) @ chances <= clipping.tail(size, margin) * up


@loop_over("order", [2.0, 3.0, 4.0, 8.0])
@loop_over("margin", [0.1, 0.5, 1.0, 3.0])
def test_constants_are_those_of_a_linear_program(order: float, margin: float) -> None:
    """Sharp: the worst distribution of Y on a grid, by linear programming, attains them to 1%."""
    y = np.concatenate([[1.0], np.linspace(0, 12, 1201), [margin * order / (order - 1)]])
    for power, bound in (
        (1, clipping.excess((Moment(order, 1),), margin)),
        (2, clipping.excess_square((Moment(order, 1),), margin)),
    ):
        if power == order:  # psi^2 is approached by ever farther points
            continue
        gain = np.maximum(y - margin, 0) ** power
        found = optimize.linprog(-gain, A_ub=[y**order], b_ub=[1], A_eq=[np.ones_like(y)], b_eq=[1])
        worst = float(gain @ found.x)
        assert worst <= bound * (1 + 1e-6)
        assert worst >= 0.99 * bound


@given(ORDERS, st.floats(0.1, 10), st.floats(1e-6, 10))
def test_margins_keep_the_bias_budget_and_are_least(order: float, size: float, bias: float) -> None:
    """The bound at the margin is within the budget; a thousandth less is not, unless at 0."""
    moments = (Moment(order, size),)
    margin = clipping.margin(moments, bias)
    assert clipping.one_sided(moments, margin) <= bias
    smaller = margin * 0.999
    assert margin < 1e-9 or clipping.one_sided(moments, smaller) > bias * (1 - 1e-9)


@pytest.mark.parametrize(
    "distribution", [stats.norm(), stats.laplace(), stats.t(df=9)], ids=["normal", "Laplace", "t"]
)
def test_bias_of_symmetric_laws_by_quadrature(distribution: object) -> None:
    """Clipping around a guess that is off moves a symmetric mean by less than the bound."""
    moments = tuple(
        Moment(p, float(distribution.expect(lambda x, p=p: abs(x) ** p)) ** (1 / p) * (1 + 1e-9))
        for p in (2.0, 4.0, 8.0)
    )
    for off, half_width in ((0.1, 1.5), (0.5, 3.0), (1.2, 6.0)):
        cut = distribution.expect(lambda x, e=off, h=half_width: min(max(x, e - h), e + h))
        bound = clipping.symmetric_bias(moments, off, half_width)
        assert abs(float(cut)) <= bound + 1e-9


@given(MARGINS)
def test_several_moments_never_loosen(margin: float) -> None:
    """With more known, every bound is at most each one's own."""
    one, other = (Moment(2, 1),), (Moment(8, 1.8),)
    for bound in (clipping.tail, clipping.excess, clipping.excess_square, clipping.one_sided):
        assert bound(one + other, margin) <= min(bound(one, margin), bound(other, margin))


@pytest.mark.parametrize(
    "parts", [(1.9, 1), (2, 0), (2, -1), (math.nan, 1), (2, math.inf), ("2", 1), (2, True)]
)
def test_bad_moments_are_refused(parts: tuple[float, float]) -> None:
    """An order below 2 or an unusable size raises."""
    with pytest.raises(InputError):
        Moment(*parts)
