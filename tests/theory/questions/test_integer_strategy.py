"""Questions in whole numbers: exact losses by enumeration, second moments, and forms."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.theory.questions import integer_strategy as whole
from shoal.theory.questions.integer_strategy import (
    TICKS,
    IntegerForm,
    answers,
    bits_for,
    integer_form,
    integer_strategy,
    loss_with_forms,
)
from shoal.theory.questions.laplace_strategy import laplace_strategy
from shoal.theory.questions.variance_forms import cr2
from shoal.theory.questions.weights import arm_means, effect, scaled, stack

Floats = NDArray[np.float64]

pytestmark = pytest.mark.property

ARM, CLUSTER = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
ROWS = stack([effect(ARM, CLUSTER), arm_means(ARM)])


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(7, 10), Fraction(5)])
def test_no_unit_loses_more_than_the_exact_loss(epsilon: Fraction) -> None:
    """Every unit, outcome and move: at most, and attained."""
    vectors = scaled(ROWS, 3.0)
    strategy = laplace_strategy(vectors)
    released = strategy.released @ vectors / 3.0
    found = whole.integer_strategy(released, 3.0, epsilon)
    outcomes = np.linspace(-whole.TICKS // 2, whole.TICKS // 2, 3).astype(np.int64)
    most = Fraction(0)
    for others in np.random.default_rng(1).choice(outcomes, (3, 6)):
        for unit, (old, new) in itertools.product(range(6), itertools.permutations(outcomes, 2)):
            pair = []
            for each in (old, new):
                ticks = others.copy()
                ticks[unit] = each
                pair.append(whole.answers(found.rows, found.steps, ticks))
            moved = sum(abs(a - b) for a, b in zip(*pair, strict=True))
            most = max(most, Fraction(moved, 2**found.bits))
    assert most <= found.loss <= epsilon
    assert most >= epsilon * (1 - Fraction(1, 10**6))


def test_answers_are_exact() -> None:
    """Against Python's whole numbers, also at the ends of all ranges."""
    rng = np.random.default_rng(2)
    rows = rng.integers(-(2**40), 2**40 + 1, (3, 500))
    rows[:, :4] = [2**40, -(2**40), 1, -1]
    ticks = rng.integers(-(2**19), 2**19 + 1, 500)
    for vector in (ticks, np.full(500, 2**19), np.sign(rows[0]) * 2**19):
        steps = np.array([1, 3, 10**12])
        wanted = [
            sum(a * t for a, t in zip(row, vector.tolist(), strict=True)) // step
            for row, step in zip(rows.tolist(), steps.tolist(), strict=True)
        ]
        assert whole.answers(rows, steps, vector) == wanted


def test_outcomes_outside_of_the_range_count_as_its_ends() -> None:
    """No unit moves further than its range, and no message says so."""
    rows, steps = np.array([[3, 5]]), np.array([1])
    far, end = np.array([2**62, -(2**62)]), np.array([2**19, -(2**19)])
    assert whole.answers(rows, steps, far) == whole.answers(rows, steps, end)


def test_rounding_of_weights_is_nothing() -> None:
    """Weights differ by 2^-40 of a row's largest, and steps say what they are worth."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, 300)) * [[1.0], [1e-3], [1e3], [1.0]]
    found = whole.integer_strategy(rows, 2.0, Fraction(1))
    tick = 2.0 / whole.TICKS
    most = np.abs(rows).max(axis=1, keepdims=True)
    unit = (found.values / found.steps / tick)[:, None]
    assert float((np.abs(found.rows * unit - rows) / most).max()) <= 2.0**-40
    ticks = rng.integers(-(2**19), 2**19, 300)
    numbers = np.array(whole.answers(found.rows, found.steps, ticks)) * found.values
    exact = rows @ (ticks * tick)
    assert bool((np.abs(numbers - exact) <= found.values * 1.001).all())
    # The noise of every number is that of the real strategy, to a millionth.
    scale = found.values * 2.0**found.bits
    np.testing.assert_allclose(scale, 2.0 * np.abs(rows).sum(axis=0).max(), rtol=1e-6)


def test_the_loss_by_hand() -> None:
    """Ceilings of every number add up; the unit that loses most counts."""
    rows, steps = np.array([[3, -5], [1, 0]]), np.array([2**20 * 2, 2**20 * 4])
    assert whole.unit_steps(rows, steps).tolist() == [2 + 1, 3]
    assert whole.exact_loss(rows, steps, 3) == Fraction(3, 8)


@pytest.mark.parametrize(
    "call",
    [
        lambda: whole.integer_strategy(ROWS, 1.0, Fraction(0)),
        lambda: whole.integer_strategy(ROWS, 1.0, Fraction(1, 10**12)),
        lambda: whole.integer_strategy(np.array([[1.0, 1.0], [0, 1e-12]]), 1.0, Fraction(1)),
        lambda: whole.unit_steps(np.array([[2**41]]), np.array([1])),
        lambda: whole.unit_steps(np.array([[1]]), np.array([0])),
        lambda: whole.unit_steps(np.full((2, 1), 2**40), np.array([1, 1])),
        lambda: whole.answers(np.ones(3, np.int64), np.array([1]), np.array([1])),
    ],
)
def test_what_does_not_fit_is_refused(call: object) -> None:
    """No wrapped sums, no steps of nothing."""
    assert callable(call)
    with pytest.raises(InputError):
        call()


# Moves of nine tenths of the range lose most where second moments have too little noise.
OUTCOMES = np.rint((np.array([0, 0.1, 0.5, 0.9, 1]) - 0.5) * whole.TICKS).astype(np.int64)


def most_lost(found: whole.IntegerStrategy, step: int) -> Fraction:
    """The most that any unit loses by any move, whatever the others' outcomes."""
    most = Fraction(0)
    for others in np.random.default_rng(1).choice(OUTCOMES, (4, 6)):
        for unit, (old, new) in itertools.product(range(6), itertools.permutations(OUTCOMES, 2)):
            pair = []
            for each in (old, new):
                ticks = others.copy()
                ticks[unit] = each
                linear = whole.answers(found.rows, found.steps, ticks)
                pair.append(linear + whole.second_moments(ARM, ticks, step))
            moved = sum(abs(a - b) for a, b in zip(*pair, strict=True))
            most = max(most, Fraction(moved, 2**found.bits))
    return most


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_all_numbers_together_cost_no_more_than_stated(epsilon: Fraction) -> None:
    """At most the stated loss, attained to a millionth; with less noise it is more."""
    vectors = scaled(ROWS, 3.0)
    strategy = laplace_strategy(vectors)
    found = whole.integer_strategy(strategy.released @ vectors / 3.0, 3.0, epsilon, bits=32)
    step = whole.moment_step(found.rows, found.steps)
    stated = whole.loss_with_moments(found.rows, found.steps, step, found.bits)
    most = most_lost(found, step)
    assert most <= stated
    assert most >= epsilon * (1 - Fraction(1, 10**6))
    assert most_lost(found, step * 4 // 5) > stated * Fraction(101, 100)
    with pytest.raises(InputError, match="not free"):
        whole.loss_with_moments(found.rows, found.steps, step - 1, found.bits)


def test_moments_are_exact_and_outcomes_outside_are_the_ends() -> None:
    """Sums of squares of a million units, and no message for what lies outside."""
    ticks = np.full(2**20, 2**62)
    found = whole.second_moments(np.zeros(2**20, dtype=np.int64), ticks, 3)
    assert found == [2**58 // 3]
    with pytest.raises(InputError, match="groups beyond"):
        whole.second_moments(np.array([-1, 0]), np.array([0, 0]), 1)


HALF = TICKS // 2
INSIDE = (-HALF, -HALF // 3, 7, HALF // 2, HALF)


def sensitivity(factor: Floats) -> float:
    """How far one outcome of [-1/2, 1/2] moves a form whose rows sum to 0: the largest S_i."""
    form = np.abs(factor.T @ factor)
    return float((form.sum(axis=0) - np.diag(form)).max())


def clipped_sensitivity(factor: Floats, limits: Floats) -> float:
    """The same of squares of clipped sums, at most: u (2R - u) for u <= R, else R^2."""
    moved = np.minimum(np.abs(factor), limits[:, None])
    return float((moved * (2 * limits[:, None] - moved)).sum(axis=0).max())


def _design(seed: int) -> tuple[Floats, Floats]:
    """CR2 of an effect of four or five groups of six units, and its weights."""
    rng = np.random.default_rng(seed)
    group = np.r_[0, 1, 2, 3, rng.integers(0, 4, 2)]
    arm = (group % 2).astype(float)
    weights = np.where(arm == 1, 1 / arm.sum(), -1 / (6 - arm.sum()))
    design = np.column_stack([np.ones(6), arm])
    return cr2(design, group.astype(np.int64), weights), weights


def _values(form: IntegerForm, levels: tuple[int, ...]) -> NDArray[np.object_]:
    """V of all outcomes on these levels, an axis a unit, in steps."""
    units = len(form.kind)
    every = itertools.product(levels, repeat=units)
    found = [form.value(np.array(each)) for each in every]
    return np.array(found, dtype=object).reshape((len(levels),) * units)


def _moved(values: NDArray[np.object_], unit: int) -> int:
    own = np.moveaxis(values, unit, 0)
    return max(
        int(np.abs(own[a] - own[b]).max()) for a, b in itertools.combinations(range(len(own)), 2)
    )


@pytest.mark.property
@pytest.mark.parametrize("seed", range(4))
def test_one_outcome_moves_a_form_by_at_most_its_steps(seed: int) -> None:
    """All outcomes on five levels; the most of all units is attained to a step."""
    factor, _ = _design(seed)
    form, unit = integer_form(factor)
    values = _values(form, INSIDE)
    moved = [_moved(values, each) for each in range(6)]
    assert all(one <= most for one, most in zip(moved, form.unit_steps().tolist(), strict=True))
    assert max(moved) >= 0.999 * int(form.unit_steps().max())
    exact = sensitivity(factor)
    assert float(form.moves.max()) * unit**2 == pytest.approx(exact, rel=1e-4)
    assert int(values.max()) <= form.most_steps
    # A unit whose own square is more than all its products with others.
    alone, _ = integer_form(np.array([[0.7, 0.1]]))
    assert _moved(_values(alone, INSIDE), 0) <= int(alone.unit_steps()[0])


@pytest.mark.property
@pytest.mark.parametrize("part", [0.02, 0.1, 0.3, 1.0])
def test_clipped_sums_move_by_at_most_their_steps(part: float) -> None:
    """With limits that bind and such that do not; where they bind it is attained."""
    factor, _ = _design(1)
    limits = part * np.abs(factor).sum(axis=1)
    form, unit = integer_form(factor, limits)
    values = _values(form, INSIDE)
    moved = [_moved(values, each) for each in range(6)]
    assert all(one <= most for one, most in zip(moved, form.unit_steps().tolist(), strict=True))
    exact = clipped_sensitivity(factor, limits)
    assert float(form.moves.max()) * unit**2 == pytest.approx(exact, rel=1e-4)
    assert int(values.max()) <= form.most_steps
    # Where limits are below what one unit moves, that takes sums from one end to the middle.
    single, _ = integer_form(np.array([[0.5, -0.5]]), np.array([0.1]))
    assert _moved(_values(single, (-HALF, 0, HALF)), 0) >= 0.999 * int(single.unit_steps().max())


@pytest.mark.property
def test_no_unit_loses_more_than_the_exact_loss_and_one_loses_it() -> None:
    """An effect and its variance together, all outcomes on three levels."""
    factor, weights = _design(2)
    form, _ = integer_form(factor)
    linear = integer_strategy(weights[None], 1.0, Fraction(1, 2))
    step = int(form.moves.max()) // 2**29
    form = IntegerForm(form.factor, form.kind, form.limits, step)
    levels = (-HALF, 0, HALF)
    every = np.array(list(itertools.product(levels, repeat=6)))
    numbers = np.array(
        [answers(linear.rows, linear.steps, each)[0] for each in every], dtype=object
    )
    shape = (3,) * 6
    both = numbers.reshape(shape), _values(form, levels)
    loss = loss_with_forms(linear.rows, linear.steps, [form], 30)
    most = 0
    for unit, (a, b) in itertools.product(range(6), ((0, 1), (0, 2), (1, 2))):
        parts = [np.abs(np.moveaxis(v, unit, 0)[a] - np.moveaxis(v, unit, 0)[b]) for v in both]
        most = max(most, int((parts[0] + parts[1]).max()))
    assert Fraction(most, 2**30) <= loss
    assert Fraction(most, 2**30) >= loss * Fraction(99, 100)


@pytest.mark.oracle
def test_values_are_exact() -> None:
    """As fractions, also of many units that share columns, clipped and not."""
    rng = np.random.default_rng(5)
    for limits in (None, np.full(7, 0.4)):
        factor = rng.normal(size=(7, 9))[:, rng.integers(0, 9, 300)]
        form, _ = integer_form(factor, limits)
        assert form.factor.shape[1] <= 9
        ticks = rng.integers(-TICKS, TICKS, 300)
        inside = np.clip(ticks, -HALF, HALF).tolist()
        total = 0
        for row, end in itertools.zip_longest(form.factor.tolist(), form.limits.tolist()):
            own = sum(row[k] * t for k, t in zip(form.kind.tolist(), inside, strict=True))
            total += own**2 if end is None else min(abs(own), end * TICKS) ** 2
        assert form.value(ticks) == total // (TICKS**2 * form.step)


@pytest.mark.unit
def test_forms_that_are_none_are_refused() -> None:
    """Other shapes, columns that nobody has, numbers beyond exact sums, forms of other units."""
    none = np.zeros(0, dtype=np.int64)
    one = np.array([[1, -1]])
    place = np.array([0, 1])
    for bad in (
        (np.array([1, -1]), place, none, 1),
        (one, np.array([0, 0]), none, 1),
        (one, np.array([-1, 1]), none, 1),
        (one << 21, place, none, 1),
        (one, place, np.array([1, 1]), 1),
        (one, place, np.array([0]), 1),
        (one, place, np.array([2**60]), 1),
        (one, place, none, 0),
    ):
        with pytest.raises(InputError):
            IntegerForm(*bad)
    with pytest.raises(InputError, match="always 0"):
        integer_form(np.zeros((2, 3)))
    with pytest.raises(InputError, match="groups of"):
        bits_for(2**20, 2**20)
    form = IntegerForm(one, place, none, 1)
    with pytest.raises(InputError, match="a form that is none"):
        loss_with_forms(np.array([[1, 1, 1]]), np.array([1]), [form], 2)
