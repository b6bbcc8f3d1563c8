"""CR2 as a form against its textbook formula."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from shoal.errors import InputError
from shoal.theory.questions import variance_forms as forms
from shoal.theory.questions.weights import regression

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(6)
Y = RNG.normal(size=60)


def textbook(
    design: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    group: np.ndarray[tuple[int], np.dtype[np.int64]],
    at: int,
) -> float:
    """CR2 from matrix roots and residuals (Bell and McCaffrey 2002)."""
    bread = np.linalg.inv(design.T @ design)
    hat = design @ bread @ design.T
    rest = np.eye(len(Y)) - hat
    residual = rest @ Y
    meat = np.zeros((design.shape[1],) * 2)
    for each in range(int(group.max()) + 1):
        own = group == each
        root = np.real(sqrtm(np.linalg.inv(rest[np.ix_(own, own)])))
        score = design[own].T @ root @ residual[own]
        meat += np.outer(score, score)
    return float((bread @ meat @ bread)[at, at])


@pytest.mark.parametrize("groups", [6, 20])
def test_cr2_is_that_of_the_textbook(groups: int) -> None:
    """To 1e-9; unbiased for independent outcomes."""
    group = np.sort(RNG.integers(0, groups, 60 - groups).tolist() + list(range(groups)))
    design = np.column_stack([np.ones(60), group % 2, RNG.normal(size=(60, 2))])
    rows = regression(design)
    for at in range(4):
        factor = forms.cr2(design, group, rows[at])
        variance = textbook(design, group, at)
        assert ((factor @ Y) ** 2).sum() == pytest.approx(variance, rel=1e-9)
        assert (factor**2).sum() == pytest.approx((rows[at] ** 2).sum(), rel=1e-9)
        np.testing.assert_allclose(factor.sum(axis=1), 0, atol=1e-12)


def test_cr2_where_dummies_fit_a_group() -> None:
    """A group with a dummy of its own has no residuals in it: the root of 0 counts as 0."""
    group = np.repeat(np.arange(6), 10)
    design = np.column_stack([group < 2, group >= 2, group % 2]).astype(float)
    rows = regression(np.column_stack([design, group == 5]))
    factor = forms.cr2(np.column_stack([design, group == 5]), group, rows[2])
    assert np.isfinite(factor).all()


def test_groups_without_units_or_others_are_refused() -> None:
    """There is no variance between groups."""
    for groups in ([0, 0], [0, 2]):
        with pytest.raises(InputError, match="one group, or an empty one"):
            forms.cr2(np.ones((2, 1)), np.array(groups), np.ones(2))
