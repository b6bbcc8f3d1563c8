"""Sensitivities of quadratic forms against all vertices and a grid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.theory.questions import quadratic_forms as forms

pytestmark = pytest.mark.property

Floats = np.ndarray[tuple[int, int], np.dtype[np.float64]]
WIDTH = 3.0


def most_moved(form: Floats, grid: int = 41) -> float:
    """The most |V(y') - V(y)|: the other outcomes at all vertices, the unit's own on a grid."""
    units, most = len(form), 0.0
    own = np.linspace(-WIDTH / 2, WIDTH / 2, grid)
    corners = np.array(list(itertools.product([-WIDTH / 2, WIDTH / 2], repeat=units - 1)))
    for unit in range(units):
        others = np.delete(np.arange(units), unit)
        slope = 2 * corners @ form[unit, others]
        diagonal = form[unit, unit]
        values = diagonal * own**2 + slope[:, None] * own
        # The vertex of the parabola is a place of its own.
        best = np.clip(-slope / (2 * diagonal), -WIDTH / 2, WIDTH / 2) if diagonal else slope * 0
        at_best = diagonal * best**2 + slope * best
        every = np.column_stack([values, at_best])
        most = max(most, float((every.max(axis=1) - every.min(axis=1)).max()))
    return most


def random_form(rng: np.random.Generator, *, centred: bool) -> Floats:
    """Symmetric, some entries 0, with rows that sum to 0 if asked; of either sign."""
    units = int(rng.integers(2, 7))
    form = rng.normal(size=(units, units)) * rng.integers(0, 2, (units, units))
    form = form + form.T + np.diag(rng.normal(size=units) * rng.choice([0.1, 1, 10]))
    if centred:
        project = np.eye(units) - 1 / units
        form = project @ form @ project
    return np.asarray((form + form.T) / 2)


@pytest.mark.parametrize("centred", [True, False])
def test_sensitivity_is_the_most_over_all_vertices(centred: bool) -> None:
    """300 random forms: never exceeded and attained, whatever the diagonal."""
    rng = np.random.default_rng(7)
    inner = 0
    for _ in range(300):
        form = random_form(rng, centred=centred)
        if not form.any():
            continue
        diagonal, others = forms.parts_of_form(form)
        found = forms.sensitivity(diagonal, others, WIDTH)
        assert most_moved(form) <= found <= most_moved(form) * (1 + 1e-9)
        inner += bool((others < diagonal * (1 - 1e-9)).any())
    assert (inner > 50) is not centred


def test_values_inside_move_no_further() -> None:
    """All outcomes on a grid of five levels, all units, all moves."""
    rng = np.random.default_rng(3)
    levels = np.linspace(-WIDTH / 2, WIDTH / 2, 5)
    for _ in range(20):
        form = random_form(rng, centred=False)[:4, :4]
        units = len(form)
        every = np.array(list(itertools.product(levels, repeat=units)))
        values = np.einsum("si,ij,sj->s", every, form, every).reshape((5,) * units)
        moved = max(float(np.ptp(values, axis=unit).max()) for unit in range(units))
        assert moved <= forms.sensitivity(*forms.parts_of_form(form), WIDTH)


def test_a_factor_has_the_parts_of_its_form() -> None:
    """Also in blocks of rows that do not divide the units."""
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(7, 600))
    for one, other in zip(
        forms.parts_of_factor(factor), forms.parts_of_form(factor.T @ factor), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_the_diagonal_of_a_form_is_free(share: float) -> None:
    """Questions of (1 - s) eps and the form lose at most eps, over all moves."""
    rng = np.random.default_rng(9)
    part = np.linspace(0, 1, 2001)
    closest = 0.0
    for _ in range(100):
        form = random_form(rng, centred=False)
        diagonal, others = forms.parts_of_form(form)
        if not others.any():
            continue
        scale = forms.paid_scale(diagonal, others, WIDTH, 0.7, share)
        for own, rest in zip(diagonal, others, strict=True):
            moved = WIDTH**2 * (own * part * (1 - part) + rest * part)
            loss = float((part * (1 - share) * 0.7 + moved / scale).max())
            assert loss <= 0.7
            closest = max(closest, loss)
    assert closest > 0.7 * (1 - 1e-9)


def test_clipped_forms_move_by_at_most_their_sensitivity() -> None:
    """All vertices and grids; attained where one row is clipped and reachable."""
    rng = np.random.default_rng(4)
    levels = np.linspace(0, WIDTH, 7)
    for _ in range(100):
        factor = rng.normal(size=(int(rng.integers(1, 4)), 4))
        factor -= factor.mean(axis=1, keepdims=True)
        limits = rng.uniform(0.2, 3, len(factor))
        every = np.array(list(itertools.product(levels, repeat=4)))
        clipped = np.clip(every @ factor.T, -limits, limits)
        values = (clipped**2).sum(axis=1).reshape((7,) * 4)
        moved = max(float(np.ptp(values, axis=unit).max()) for unit in range(4))
        assert moved <= forms.clipped_sensitivity(factor, limits, WIDTH)
    one = forms.clipped_sensitivity(np.array([[1.0, -1.0]]), np.array([1.0]), WIDTH)
    assert one == pytest.approx(1.0)
    half = forms.clipped_sensitivity(np.array([[0.1, -0.1]]), np.array([1.0]), WIDTH)
    assert half == pytest.approx(0.3 * 1.7)


@pytest.mark.parametrize(
    "call",
    [
        lambda: forms.parts_of_form(np.array([[1.0, 2.0], [0.0, 1.0]])),
        lambda: forms.parts_of_form(np.ones((2, 3))),
        lambda: forms.parts_of_form(np.full((2, 2), np.nan)),
        lambda: forms.parts_of_factor(np.ones(3)),
        lambda: forms.sensitivity(np.array([-1.0]), np.array([1.0]), 1.0),
        lambda: forms.sensitivity(np.array([1.0]), np.array([1.0]), 0.0),
        lambda: forms.paid_scale(np.array([1.0]), np.array([1.0]), 1.0, 1.0, 1.0),
        lambda: forms.clipped_sensitivity(np.ones((1, 2)), np.array([0.0]), 1.0),
    ],
)
def test_what_is_no_form_is_refused(call: object) -> None:
    """No symmetry, no numbers, no limits."""
    assert callable(call)
    with pytest.raises(InputError):
        call()
