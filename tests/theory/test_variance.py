"""Variances: sensitivity and bias over all data sets, with masses, and with the mean together."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.theory import variance
from tests.support.loop import loop_over

CLOSE = 1 + Fraction(1, 2**49)


def data_sets(points: int, n: int) -> NDArray[np.int64]:
    """All data sets of n whole values 0..points-1, shape (n, points, ..., points)."""
    return np.indices((points,) * n)


def spread(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The variance over the first axis, times its length squared: a whole number."""
    return np.asarray(len(values) * (values**2).sum(axis=0) - values.sum(axis=0) ** 2)


def three_cases(k: int, n: int) -> Fraction:
    """V(k, n) over U^2 as docs/theory/cells.md#variance states it."""
    if n > 2 * k:
        return Fraction(k * (n - k), n**2)
    return Fraction(1, 4) * (1 - Fraction(n % 2, n**2))


def stated(k: int, n: int) -> Fraction:
    """The function under test."""
    return Fraction(float(variance.sensitivity(np.array([k]), np.array([n]))[0]))


@pytest.mark.parametrize(("points", "most"), [(3, 8), (5, 6)])
def test_all_data_sets(points: int, most: int) -> None:
    """V(k, n) is attained and never exceeded by changing k values, for every k and n."""
    for n in range(1, most + 1):
        variances = spread(data_sets(points, n))
        for k in range(1, n + 1):
            own = tuple(range(k))
            moves = variances.max(axis=own) - variances.min(axis=own)
            exact = Fraction(int(moves.max()), (n * (points - 1)) ** 2)
            assert exact == three_cases(k, n)
            assert exact <= stated(k, n) <= exact * CLOSE


@pytest.mark.parametrize("n", range(1, 9))
def test_erratum_1_bias_has_the_product_when_fewer_than_half_are_dropped(n: int) -> None:
    """All data sets on five points, every q: the condition is n > 2q, with q dropped."""
    values = data_sets(5, n)
    whole = spread(values)
    for q in range(n):
        kept = n - q
        difference = np.abs(whole * kept**2 - spread(values[q:]) * n**2).max()
        exact = Fraction(int(difference), (4 * n * kept) ** 2)
        found = Fraction(float(variance.bias(np.array([q]), np.array([n]))[0]))
        assert exact == (three_cases(q, n) if q else 0)
        assert exact <= found <= exact * CLOSE


@given(k=st.integers(1, 10**9), extra=st.integers(0, 10**9))
def test_rounded_upwards_and_never_falling_in_k(k: int, extra: int) -> None:
    """The stated number is at most a hair above the exact one, never below."""
    n = k + extra
    exact = three_cases(k, n)
    assert exact <= stated(k, n) <= exact * CLOSE
    assert three_cases(min(k + 1, n), n) >= exact


HALF = Fraction(1, 2)
MARGIN = 1 + Fraction(1, 2**19)
# Sixths from -1/2 to 1/2: halves, thirds and the middle are among them.
GRID = np.arange(-3, 4)


def by_formula(w: Fraction, kept: Fraction) -> Fraction:
    """The most that a user of mass w in W moves 4 Var, as the page states it."""
    rest = kept - w
    if rest >= w:
        return w * (1 - w + rest) ** 2 / (1 - w)
    return w + (rest**2 / (1 - w) if rest else 0)


def stated_of_mass(w: Fraction, kept: Fraction) -> Fraction:
    """The function under test."""
    found = variance.mass_sensitivity(np.array([float(w)]), np.array([float(kept)]))
    return Fraction(float(found[0]))


def most_moved(own: int, others: tuple[int, ...], total: int, records: int) -> Fraction:
    """The most that 4 Var moves over all values of one user with some records, and of the others.

    Args:
        own: Weight of the user, over `total`; each of its records has an equal part.
        others: Weights of the other users, one record each.
        total: What weights are divided by; the rest is missing.
        records: Of the user.
    """
    mine = np.array(list(itertools.combinations_with_replacement(GRID, records)))
    every = list(itertools.product(GRID, repeat=len(others)))
    theirs = np.array(every, dtype=np.int64).reshape(len(every), len(others))
    weight = records * np.array(others, dtype=np.int64)
    first = own * mine.sum(axis=1)[:, None] + theirs @ weight
    second = own * (mine**2).sum(axis=1)[:, None] + theirs**2 @ weight
    whole = total * records
    moved = second * whole - first**2
    # In sixths and squared: 4/36 of the square of the whole.
    return Fraction(int((moved.max(axis=0) - moved.min(axis=0)).max()), 9 * whole**2)


def on_grid(w: Fraction, kept: Fraction, records: int) -> bool:
    """Whether the proof's worst pair of a user's values can be made of this many records."""
    rest = kept - w
    first = min(HALF, rest / (2 * w))
    second = -rest / (2 * (1 - w)) if w < 1 else Fraction(0)
    at_bounds = records * (first + HALF)
    return at_bounds.denominator == 1 and (6 * second).denominator == 1


CASES = [
    (own, others, total)
    for total in range(1, 9)
    for own in range(1, total + 1)
    for rest in range(total - own + 1)
    for others in ({(rest,), (rest // 2, rest - rest // 2)} if rest else {()})
]


@pytest.mark.parametrize("records", [1, 2, 3, 4])
def test_no_user_moves_a_weighted_variance_further(records: int) -> None:
    """Every weight over up to 8, kept or missing; attained where the grid allows."""
    attained = 0
    for own, others, total in CASES:
        w, kept = Fraction(own, total), Fraction(own + sum(others), total)
        exact, most = by_formula(w, kept), most_moved(own, others, total, records)
        assert most <= exact <= stated_of_mass(w, kept) <= exact * MARGIN, (own, others, total)
        if on_grid(w, kept, records):
            assert most == exact, (own, others, total)
            attained += 1
    assert attained >= 40


@given(
    w=st.fractions(0, 1, max_denominator=2**40),
    rest=st.fractions(0, 1, max_denominator=2**40),
    more=st.fractions(0, 1, max_denominator=2**10),
)
def test_rounded_upwards_and_growing_with_weight_and_mass(
    w: Fraction, rest: Fraction, more: Fraction
) -> None:
    """Weights and masses that were rounded upwards never cost less."""
    kept = w + (1 - w) * rest
    exact = by_formula(w, kept) if w < 1 else Fraction(1)
    assert min(exact, Fraction(1)) <= stated_of_mass(w, kept) <= exact * MARGIN + Fraction(1, 2**60)
    heavier = w + (kept - w) * more
    assert by_formula(heavier, kept) >= exact if heavier < 1 else exact <= 1
    fuller = kept + (1 - kept) * more
    assert by_formula(w, fuller) >= exact if w < 1 else exact <= 1


def variances(weights: np.ndarray, counts: tuple[int, ...], total: int) -> np.ndarray:
    """4 Var in all data sets on four points, users' means weighed, the rest in the middle.

    Times (total x product of counts)^2 x 9: a whole number.
    """
    grid = np.array([-3, -1, 1, 3])
    records = np.array(list(itertools.product(grid, repeat=sum(counts))))
    user = np.repeat(np.arange(len(counts)), counts)
    scale = int(np.prod(counts))
    each = (weights * (scale // np.array(counts)))[user]
    first, second, whole = records @ each, records**2 @ each, total * scale
    return np.asarray(second * whole - first**2)


def middle(missing: Fraction) -> Fraction:
    """What is added to 4 Var for the missing mass."""
    added = missing * (1 - missing)
    return added if missing <= HALF else HALF - added


COUNTS = [(1, 1), (1, 2), (1, 1, 1), (3, 1), (2, 2, 1), (1, 1, 3), (1, 2, 3)]


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_bias_of_missing_mass(counts: tuple[int, ...]) -> None:
    """Parts of users missing, in quarters: attained where users are in or out."""
    n, scale = sum(counts), 4 * int(np.prod(counts))
    everybody = variances(4 * np.array(counts), counts, 4 * n)
    for parts in itertools.product(range(5), repeat=len(counts)):
        weights = np.array(parts) * np.array(counts)
        missing = 1 - Fraction(int(weights.sum()), 4 * n)
        added = middle(missing)
        off = variances(weights, counts, 4 * n) - everybody
        # In sixths and squared, over the square of the whole.
        unit = 9 * (n * scale) ** 2
        most = max(abs(Fraction(int(side), unit) + added) for side in (off.min(), off.max()))
        gap = np.array([float(missing)])
        found = Fraction(float(variance.mass_bias(gap, gap)[0]))
        assert most <= found
        if set(parts) <= {0, 4}:
            assert found <= most * MARGIN


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_bias_of_other_weights(counts: tuple[int, ...]) -> None:
    """Capped and suppressed users: V(distance), attained where users are dropped."""
    n, scale = sum(counts), int(np.prod(counts))
    plain = np.array(counts)
    everybody = variances(plain, counts, n)
    for kept in itertools.product(*(range(m + 1) for m in counts)):
        total = sum(kept)
        if total == 0:
            continue
        found = variances(np.array(kept), counts, total)
        off = np.abs(found * n**2 - everybody * total**2).max()
        most = Fraction(int(off), 9 * (n * total * scale) ** 2)
        apart = [Fraction(w, total) - Fraction(m, n) for w, m in zip(kept, counts, strict=True)]
        distance = sum(max(each, Fraction(0)) for each in apart)
        bound = variance.mass_bias(np.zeros(1), np.array([float(distance)]))
        assert most <= Fraction(float(bound[0])) * (1 + Fraction(1, 2**50))
        if all(w in {0, m} for w, m in zip(kept, counts, strict=True)) and distance < HALF:
            assert float(bound[0]) == pytest.approx(float(most), rel=1e-12)


SCALES = [(0.1, 0.2), (0.1, 0.1), (0.1, 0.099), (0.2, 0.05), (1.0, 0.01), (3.0, 5.0)]


@pytest.mark.parametrize(("first", "second"), SCALES)
def test_loss_is_the_most_over_all_pairs(first: float, second: float) -> None:
    """A convex function of two points of the hull is largest at the curve: all pairs on a grid."""
    y = np.linspace(-0.5, 0.5, 2001)
    apart = (
        np.abs(y[:, None] - y) / first + np.abs((y**2)[:, None] - y**2) / second  # all pairs
    )
    stated = float(variance.joint_loss(first, second))
    assert apart.max() <= stated * (1 + 1e-12)
    assert apart.max() == pytest.approx(stated, rel=1e-6)


@given(first=st.floats(1e-6, 1e6), second=st.floats(1e-6, 1e6))
def test_loss_is_rounded_upwards(first: float, second: float) -> None:
    """Never below the exact value of the formula, with h = 1/2, and a hair above at most."""
    b1, b2 = Fraction(first), Fraction(second)
    exact = 1 / b1 if b2 >= b1 else (Fraction(1, 2) + b2 / (2 * b1)) ** 2 / b2
    found = Fraction(float(variance.joint_loss(first, second)))
    assert exact <= found <= exact * (1 + Fraction(1, 2**48))


def expectation(first: float, second: float, mean: float) -> tuple[float, float]:
    """E of Var^ - Var and of its absolute value, by quadrature over the noise of the mean."""
    z, step = np.linspace(-40 * first, 40 * first, 800_001, retstep=True)
    density = np.exp(-np.abs(z) / first) / (2 * first) * step
    # Without the noise of the second moment; with it, E|c + N| = |c| + b e^(-|c|/b).
    rest = -2 * mean * z - z**2 + 2 * first**2
    away = np.abs(rest) + second * np.exp(-np.abs(rest) / second)
    return float(density @ rest), float(density @ away)


@loop_over(("first", "second"), SCALES)
@loop_over("mean", [-0.5, 0.0, 0.2, 0.5])
def test_error_bound_holds_and_the_estimate_is_unbiased(
    first: float, second: float, mean: float
) -> None:
    """For the largest, the least and other means."""
    centre, error = expectation(first, second, mean)
    assert centre == pytest.approx(0, abs=1e-6 * first)
    assert error <= variance.joint_error(first, second) * (1 + 1e-9)


def test_the_squared_noise_of_a_mean_is_by_quadrature() -> None:
    """E |X^2 - 2| where the other terms vanish."""
    assert expectation(1.0, 1e-9, 0.0)[1] == pytest.approx(variance.SQUARE_NOISE, rel=1e-6)
