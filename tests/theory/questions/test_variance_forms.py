"""Variances as forms against their textbook formulas."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from shoal.errors import InputError
from shoal.theory.questions import variance_forms as forms
from shoal.theory.questions.weights import effect, regression

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(6)
ARM = np.tile([0, 1, 1, 0, 1], 12)
CLUSTER = np.repeat(np.arange(4), [10, 15, 15, 20])
CELL = CLUSTER * 2 + ARM
Y = RNG.normal(size=60)


def test_neymans_variance() -> None:
    """Sum of omega^2 s^2/n over cells, whose largest S_i is max w^2."""
    weights = effect(ARM, CLUSTER)
    form = forms.neyman(weights, CELL)
    shares = np.bincount(CLUSTER) / 60
    wanted = sum(
        shares[cell // 2] ** 2 * Y[cell == CELL].var(ddof=1) / (cell == CELL).sum()
        for cell in range(8)
    )
    assert Y @ form @ Y == pytest.approx(wanted)
    np.testing.assert_allclose(form.sum(axis=0), 0, atol=1e-15)
    off_diagonal = np.abs(form).sum(axis=0) - np.abs(np.diag(form))
    assert off_diagonal.max() == pytest.approx((weights**2).max())


def test_matched_pairs() -> None:
    """The variance of a mean of differences; |Q_ii| = 1/P^2 and S_i = 3/P^2 for single units."""
    pair = np.repeat(np.arange(9), 2)
    weights = np.tile([1.0, -1.0], 9) / 9
    factor, y = forms.matched_pairs(weights, pair), Y[:18]
    differences = y[::2] - y[1::2]
    assert ((factor @ y) ** 2).sum() == pytest.approx(differences.var(ddof=1) / 9)
    form = np.abs(factor.T @ factor)
    np.testing.assert_allclose(np.diag(form), 1 / 81)
    np.testing.assert_allclose(form.sum(axis=0), 4 / 81)
    assert forms.degrees_of_freedom(factor) == pytest.approx(8)


def test_pairs_of_groups() -> None:
    """Means of groups as single units would be."""
    pair = np.repeat(np.arange(3), 5)
    weights = np.tile([0.5, 0.5, -1 / 3, -1 / 3, -1 / 3], 3) / 3
    differences = (Y[:15] * weights * 3).reshape(3, 5).sum(axis=1)
    factor = forms.matched_pairs(weights, pair)
    assert ((factor @ Y[:15]) ** 2).sum() == pytest.approx(differences.var(ddof=1) / 3)


def textbook(
    design: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    group: np.ndarray[tuple[int], np.dtype[np.int64]],
    at: int,
) -> tuple[float, float]:
    """CR2 and its degrees from matrix roots and residuals (Bell and McCaffrey 2002)."""
    bread = np.linalg.inv(design.T @ design)
    hat = design @ bread @ design.T
    rest = np.eye(len(Y)) - hat
    residual = rest @ Y
    parts, meat = [], np.zeros((design.shape[1],) * 2)
    for each in range(int(group.max()) + 1):
        own = group == each
        root = np.real(sqrtm(np.linalg.inv(rest[np.ix_(own, own)])))
        score = design[own].T @ root @ residual[own]
        meat += np.outer(score, score)
        parts.append(rest[:, own] @ root @ design[own] @ bread[at])
    inner = np.array([[one @ other for other in parts] for one in parts])
    values = np.linalg.eigvalsh(inner)
    return float((bread @ meat @ bread)[at, at]), float(values.sum() ** 2 / (values**2).sum())


@pytest.mark.parametrize("groups", [6, 20])
def test_cr2_is_that_of_the_textbook(groups: int) -> None:
    """To 1e-9, with Bell and McCaffrey's degrees; unbiased for independent outcomes."""
    group = np.sort(RNG.integers(0, groups, 60 - groups).tolist() + list(range(groups)))
    design = np.column_stack([np.ones(60), group % 2, RNG.normal(size=(60, 2))])
    rows = regression(design)
    for at in range(4):
        factor = forms.cr2(design, group, rows[at])
        variance, degrees = textbook(design, group, at)
        assert ((factor @ Y) ** 2).sum() == pytest.approx(variance, rel=1e-9)
        assert forms.degrees_of_freedom(factor) == pytest.approx(degrees, rel=1e-9)
        assert (factor**2).sum() == pytest.approx((rows[at] ** 2).sum(), rel=1e-9)
        np.testing.assert_allclose(factor.sum(axis=1), 0, atol=1e-12)


def test_cr2_where_dummies_fit_a_group() -> None:
    """A group with a dummy of its own has no residuals in it: the root of 0 counts as 0."""
    group = np.repeat(np.arange(6), 10)
    design = np.column_stack([group < 2, group >= 2, group % 2]).astype(float)
    rows = regression(np.column_stack([design, group == 5]))
    factor = forms.cr2(np.column_stack([design, group == 5]), group, rows[2])
    assert np.isfinite(factor).all()
    assert 1 <= forms.degrees_of_freedom(factor) <= 6
    with_one = forms.cr2(np.ones((60, 1)), group, np.full(60, 1 / 60))
    assert forms.degrees_of_freedom(with_one) == pytest.approx(5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: forms.neyman(np.array([1.0, -1.0]), np.array([0, 1])),
        lambda: forms.neyman(np.array([1.0, 0.5]), np.array([0, 0])),
        lambda: forms.neyman(np.array([1.0]), np.array([-1])),
        lambda: forms.matched_pairs(np.array([1.0, -1.0]), np.array([0, 0])),
        lambda: forms.matched_pairs(np.array([1.0, -1, 1, 1]), np.array([0, 0, 1, 1])),
        lambda: forms.matched_pairs(np.array([1.0, -1, 1, -1]), np.array([0, 0, 2, 2])),
        lambda: forms.cr2(np.ones((2, 1)), np.array([0, 0]), np.ones(2)),
        lambda: forms.cr2(np.ones((2, 1)), np.array([0, 2]), np.ones(2)),
        lambda: forms.degrees_of_freedom(np.zeros((2, 2))),
    ],
)
def test_variances_that_are_none_are_refused(call: object) -> None:
    """Cells of one unit, incomplete pairs, empty groups."""
    assert callable(call)
    with pytest.raises(InputError):
        call()
