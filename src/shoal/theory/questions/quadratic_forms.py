"""Variances as public quadratic forms V = (y - c)' Q (y - c) of outcomes, and their sensitivity.

c is the middle of the range of width U; where Q 1 = 0 it makes no difference. A form is given by Q,
or by a factor B with Q = B'B.

Source: docs/theory/questions.md#quadratic-forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal import checks
from shoal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Sums of n products are rounded by less than this, as a part of their size.
_OUTWARD = 1 + 2.0**-40
_SYMMETRIC = 1e-12
# Rows of Q that are computed at once.
_ROWS = 256


def parts_of_form(form: Floats) -> tuple[Floats, Floats]:
    """|Q_ii| and S_i = sum over j != i of |Q_ij| for each unit.

    Source: docs/theory/questions.md#quadratic-forms.

    Args:
        form: Q, symmetric, without a unit, shape (units, units).

    Returns:
        Both without a unit, each of shape (units,).

    Raises:
        InputError: No symmetric matrix of finite numbers.

    Example:
        >>> [each.tolist() for each in parts_of_form(np.array([[1.0, -2.0], [-2.0, 3.0]]))]
        [[1.0, 3.0], [2.0, 2.0]]
    """
    shape: tuple[int, ...] = getattr(form, "shape", ())
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise InputError(f"a form of shape {shape}", "units by units", "give a square matrix")
    size = np.abs(np.asarray(form, np.float64))
    if not float(np.abs(form - form.T).max()) <= _SYMMETRIC * float(size.max()):
        raise InputError("a form that is not symmetric", "Q = Q'", "take (Q + Q')/2")
    diagonal = np.diag(size).copy()
    np.fill_diagonal(size, 0)
    return diagonal, np.maximum(size.sum(axis=0), size.sum(axis=1))


def parts_of_factor(factor: Floats) -> tuple[Floats, Floats]:
    """`parts_of_form` for Q = B'B, without keeping all of Q.

    Source: docs/theory/questions.md#quadratic-forms.

    Args:
        factor: B, without a unit, shape (rows, units).

    Returns:
        Both without a unit, each of shape (units,).

    Raises:
        InputError: No matrix of finite numbers.

    Example:
        >>> [each.tolist() for each in parts_of_factor(np.array([[1.0, -1.0], [0.0, 2.0]]))]
        [[1.0, 5.0], [1.0, 1.0]]
    """
    factor = _factor(factor)
    diagonal = np.einsum("gi,gi->i", factor, factor)
    others = np.empty_like(diagonal)
    for start in range(0, len(diagonal), _ROWS):
        part = slice(start, start + _ROWS)
        block = np.abs(factor[:, part].T @ factor)
        own = np.arange(start, start + len(block))
        block[np.arange(len(block)), own] = 0
        others[part] = block.sum(axis=1)
    return diagonal, others


def sensitivity(diagonal: Floats, others: Floats, width: float) -> float:
    """How far one outcome moves V: U^2 max S_i, or U^2 (|Q_ii| + S_i)^2/(4 |Q_ii|) if S_i < |Q_ii|.

    Attained with the other outcomes at the ends of the range. Where Q 1 = 0, S_i >= |Q_ii| always.

    Source: docs/theory/questions.md#quadratic-forms.

    Args:
        diagonal: |Q_ii|, without a unit, shape (units,).
        others: S_i, without a unit, same shape.
        width: U, in the outcome's unit.

    Returns:
        In the outcome's squared unit, rounded upwards.

    Raises:
        InputError: Numbers below 0, or outside their ranges.

    Guarantees: G-REACH.

    Example:
        >>> round(sensitivity(np.array([1.0, 4.0]), np.array([2.0, 2.0]), 1.0), 6)
        2.25
    """
    diagonal, others = _parts(diagonal, others)
    width = checks.number(width, "width", above=0)
    inner = (diagonal + others) ** 2 / (4 * np.where(diagonal > 0, diagonal, 1))
    moved = np.where(others >= diagonal, others, inner)
    return float(width * width * moved.max() * _OUTWARD)


def paid_scale(
    diagonal: Floats, others: Floats, width: float, epsilon: float, share: float
) -> float:
    """Laplace scale of V beside questions of loss (1 - s) eps: the diagonal is free, S_i is paid.

    b = U^2 max(max S_i/(s eps), max |Q_ii|/eps): a move of a part x of the range then loses at most
    eps (x + x (1 - x)) <= eps.

    Source: docs/theory/questions.md#quadratic-forms.

    Args:
        diagonal: |Q_ii|, without a unit, shape (units,).
        others: S_i, without a unit, same shape.
        width: U, in the outcome's unit.
        epsilon: Privacy loss of questions and form together.
        share: s, the part of epsilon for the form, between 0 and 1.

    Returns:
        In the outcome's squared unit, rounded upwards.

    Raises:
        InputError: Numbers outside their ranges.

    Guarantees: G-REACH.

    Example:
        >>> round(paid_scale(np.array([1.0, 4.0]), np.array([2.0, 2.0]), 1.0, 1.0, 0.25), 6)
        8.0
    """
    diagonal, others = _parts(diagonal, others)
    width = checks.number(width, "width", above=0)
    epsilon = checks.number(epsilon, "epsilon", above=0)
    share = checks.number(share, "share", above=0, below=1, example=0.1)
    needed = max(float(others.max()) / share, float(diagonal.max()))
    return width * width * needed / epsilon * _OUTWARD


def clipped_sensitivity(factor: Floats, limits: Floats, width: float) -> float:
    """How far one outcome moves V = sum_g clip(r_g, -R_g, R_g)^2, r = B y.

    At most max_i sum_g h(U |B_gi|), h(u) = u (2 R_g - u) for u <= R_g, else R_g^2.

    Source: docs/theory/questions.md#quadratic-forms.

    Args:
        factor: B, without a unit, shape (rows, units).
        limits: R, in the outcome's unit, above 0, shape (rows,).
        width: U, in the outcome's unit.

    Returns:
        In the outcome's squared unit, rounded upwards.

    Raises:
        InputError: Numbers outside their ranges.

    Guarantees: G-REACH.

    Example:
        >>> round(clipped_sensitivity(np.array([[0.5, -0.5]]), np.array([1.0]), 1.0), 6)
        0.75
    """
    factor = _factor(factor)
    limits = np.asarray(limits, np.float64)
    if not bool((limits > 0).all()):
        raise InputError("a limit of at most 0", "limits above 0", "take three deviations")
    width = checks.number(width, "width", above=0)
    # h grows up to u = R, and is R^2 from there on.
    moved = np.minimum(width * np.abs(factor), limits[:, None])
    each = moved * (2 * limits[:, None] - moved)
    return float(each.sum(axis=0).max() * _OUTWARD)


def _factor(factor: Floats) -> Floats:
    shape: tuple[int, ...] = getattr(factor, "shape", ())
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"a factor of shape {shape}", "rows by units", "give a matrix")
    return np.asarray(np.asarray(factor, np.float64))


def _parts(diagonal: Floats, others: Floats) -> tuple[Floats, Floats]:
    diagonal = np.asarray(diagonal, np.float64)
    others = np.asarray(others, np.float64)
    if not len(diagonal) or float(min(diagonal.min(), others.min())) < 0:
        raise InputError("no units, or parts below 0", "sizes from 0", "take the parts of a form")
    return diagonal, others
