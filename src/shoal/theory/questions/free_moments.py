"""Second moments about the middle of the range cost nothing beside linear questions.

S_k = sum_i q_ki (y_i - c)^2, c the middle of the range of width U. A move of an outcome by d moves
(y - c)^2 by at most d (U - d): nothing where the linear questions move most.

Source: docs/theory/questions.md#second-moments-are-free.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from shoal import checks
from shoal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# phi^(5/2), phi the golden ratio; rounded downwards.
_GOLDEN = math.nextafter(((1 + math.sqrt(5)) / 2) ** 2.5, 0.0)
# Covers the roundings of a quotient and a product.
_OUTWARD = 1 + 2.0**-50


def laplace_scales(weights: Floats, width: float, epsilon: float) -> Floats:
    """Laplace scales of second moments that are free beside questions of loss epsilon.

    b_k = U^2 f max_i q_ki/eps with f = max_i sum_k q_ki/max_j q_kj, which is 1 for sums over
    disjoint groups: then sum_k q_ki/b_k <= eps/U^2 for all units. The questions must cost a move
    d of any outcome at most eps d/U.

    Source: docs/theory/questions.md#second-moments-are-free.

    Args:
        weights: q, from 0, without a unit, shape (sums, units).
        width: U, in the outcome's unit.
        epsilon: Privacy loss of the questions, and of all together.

    Returns:
        Scales in the outcome's squared unit, rounded upwards, shape (sums,).

    Raises:
        InputError: Weights below 0, a sum without weight, or numbers outside their ranges.

    Guarantees: G-LOSS.

    Example:
        >>> laplace_scales(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 2.0]]), 2.0, 1.0).round(9).tolist()
        [2.0, 8.0]
    """
    weights, most = _most(weights)
    width, epsilon = _positive(width, "width"), _positive(epsilon, "epsilon")
    together = float((weights / most[:, None]).sum(axis=0).max())
    return np.asarray(width * width * together * most / epsilon * _OUTWARD**4)


def gaussian_deviations(weights: Floats, width: float, rho: float) -> Floats:
    """Standard deviations of Gaussian noise of second moments that are free beside rho-zCDP.

    sigma_k = U^2 f max_i q_ki/(sqrt(2 rho) phi^(5/2)), phi the golden ratio, with
    f^2 = max_i sum_k (q_ki/max_j q_kj)^2, which is 1 for sums over disjoint groups. The questions
    must cost a move d of any outcome at most rho (d/U)^2.

    Source: docs/theory/questions.md#second-moments-are-free.

    Args:
        weights: q, from 0, without a unit, shape (sums, units).
        width: U, in the outcome's unit.
        rho: Loss of the questions, and of all together.

    Returns:
        Standard deviations in the outcome's squared unit, rounded upwards, shape (sums,).

    Raises:
        InputError: As `laplace_scales`.

    Guarantees: G-LOSS.

    Example:
        >>> gaussian_deviations(np.array([[1.0, 1.0]]), 1.0, 0.5).round(4).tolist()
        [0.3003]
    """
    weights, most = _most(weights)
    width, rho = _positive(width, "width"), _positive(rho, "rho")
    together = math.sqrt(float(((weights / most[:, None]) ** 2).sum(axis=0).max()))
    rate = math.sqrt(2 * rho) * _GOLDEN
    return np.asarray(width * width * together * most / rate * _OUTWARD**4)


def loss_of_move(part: Floats, linear: float, moments: float) -> Floats:
    """Loss of a move of a part x of the range: L x + B x (1 - x).

    L is the loss of the linear questions for the whole range, B = U^2 sum_k q_ki/b_k. It is at most
    L for every x in 0..1 iff B <= L.

    Source: docs/theory/questions.md#second-moments-are-free.

    Args:
        part: x, parts of the width, shape (moves,).
        linear: L, a loss.
        moments: B, a loss.

    Returns:
        Losses, shape (moves,).

    Guarantees: G-LOSS.

    Example:
        >>> loss_of_move(np.array([0.5, 1.0]), 1.0, 1.0).tolist()
        [0.75, 1.0]
    """
    return np.asarray(linear * part + moments * part * (1 - part))


def _most(weights: Floats) -> tuple[Floats, Floats]:
    shape: tuple[int, ...] = getattr(weights, "shape", ())
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"weights of shape {shape}", "sums by units", "give a row for each sum")
    weights = np.asarray(weights, np.float64)
    most = weights.max(axis=1)
    if not bool((weights >= 0).all()) or not most.all():
        raise InputError(
            "a weight below 0, or a sum without weight",
            "weights from 0, one above 0 in each sum",
            "leave out sums without units",
        )
    return weights, most


def _positive(value: float, name: str) -> float:
    return checks.number(value, name, above=0)
