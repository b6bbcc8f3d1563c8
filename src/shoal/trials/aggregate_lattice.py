"""What the mechanisms that release aggregates share: levels as ticks, sizes, the lattice."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.errors import DataError, DocumentError, InputError
from shoal.privacy.noise import LARGEST_STEPS, MOST_BITS
from shoal.privacy.noise_lattice import lattice_bits

TICK_BITS = 20
TOP: int = 1 << TICK_BITS
_FEWEST, _ARMS = 2, 2


def ticks(levels: Sequence[float]) -> NDArray[np.int64]:
    """Levels as whole ticks of the width / 2^20, from 0 to 2^20.

    A level moves by at most half a tick, width / 2^21; the outer two do not move.

    Raises:
        InputError: Fewer than two levels, not finite, or not rising.

    Example:
        >>> ticks((-1.0, 0.0, 3.0)).tolist()
        [0, 262144, 1048576]
    """
    numbers = [float(level) for level in levels]
    rising = all(low < high for low, high in itertools.pairwise(numbers))
    if len(numbers) < _FEWEST or not all(map(math.isfinite, numbers)) or not rising:
        raise InputError(
            f"{len(numbers)} levels", "two or more finite numbers, rising", "give a Space's levels"
        )
    low, width = Fraction(numbers[0]), Fraction(numbers[-1]) - Fraction(numbers[0])
    return np.array([round((Fraction(x) - low) / width * TOP) for x in numbers], dtype=np.int64)


def check_sizes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sizes as an array of clusters x arms, control first.

    Raises:
        InputError: No such array, fewer than two arms, or a group with nobody.
    """
    found = np.asarray(sizes)
    shaped = found.ndim == _ARMS and found.shape[0] > 0 and found.shape[1] >= _ARMS
    if not shaped or found.dtype.kind != "i" or int(found.min()) < 1:
        raise InputError(
            f"sizes of shape {found.shape} and type {found.dtype}",
            "whole numbers from 1, clusters x arms, two arms or more",
            "leave out clusters where an arm has nobody",
        )
    return found.astype(np.int64)


def check_counts(counts: NDArray[np.int64], sizes: NDArray[np.int64], levels: int) -> None:
    """Refuse counts that are not those of every unit of every group.

    Raises:
        DataError: Another shape, a count below 0, or sums that are not the public sizes.
    """
    whole = counts.shape == (*sizes.shape, levels) and counts.dtype.kind == "i"
    if not whole or int(counts.min()) < 0 or not np.array_equal(counts.sum(axis=2), sizes):
        raise DataError(
            f"counts of shape {counts.shape}",
            f"clusters x arms x {levels} levels, adding up to the public sizes",
            "give one outcome for each unit",
        )


def fit_lattice(numbers: int, units: int, epsilon: Fraction) -> tuple[int, int]:
    """Lattice bits j, and the whole steps that epsilon allows one outcome: floor(epsilon 2^j).

    Args:
        numbers: How many one outcome moves, at most.
        units: Of all groups; no number is above (units + 1) times the steps.
        epsilon: Loss of one outcome.

    Raises:
        InputError: epsilon is not above 0, or the lattice would leave 64-bit integers.
    """
    if epsilon <= 0:
        raise InputError(
            f"epsilon {float(epsilon):g}", "a number above 0", "give for example epsilon=1"
        )
    narrow = min(max(float(epsilon), 2.0**-MOST_BITS), 1.0)
    bits = lattice_bits(numbers, narrow)
    steps = math.floor(epsilon * 2**bits)
    if bits >= MOST_BITS - 1 or 2 * steps * (units + 1) > LARGEST_STEPS:
        raise InputError(
            f"epsilon {float(epsilon):.3g} for {units} units",
            "numbers that fit 64-bit integers",
            "ask for a more moderate epsilon",
        )
    return bits, steps


def step_variance(bits: int) -> float:
    """Variance of discrete Laplace noise of scale 2^bits, in squared steps.

    1/(2 sinh^2(1/(2t))) at the scale t; just below 2 t^2, the value of continuous noise.

    Example:
        >>> round(step_variance(10) / 2**21, 12)
        0.999999920527
    """
    return 0.5 / math.sinh(2.0 ** (-bits - 1)) ** 2


def popoviciu(sizes: NDArray[np.int64], width: float) -> NDArray[np.float64]:
    """Largest sample variance of a cluster's potential outcomes, for every group.

    n numbers between bounds `width` apart have a sample variance of at most
    n/(n - 1) width^2/4.

    Returns:
        Clusters x arms, in squared units of the outcome.
    """
    whole = sizes.sum(axis=1, keepdims=True)
    return np.asarray(np.broadcast_to(whole / (whole - 1) * width**2 / 4, sizes.shape))


def read_design(
    document: documents.Document, names: tuple[str, ...]
) -> tuple[NDArray[np.int64], tuple[float, ...], list[Any]]:
    """Sizes, levels and whole numbers from 0 of a document.

    Raises:
        DocumentError: A part is missing or damaged.
    """
    try:
        numbers = [document[name] for name in names]
        sizes = documents.unpack_integers(document["sizes"], "sizes").reshape(-1, document["arms"])
        levels = tuple(float(level) for level in document["levels"])
        check_sizes(sizes)
        ticks(levels)
        whole = all(type(number) is int and 0 <= number < LARGEST_STEPS for number in numbers)
    except (KeyError, TypeError, ValueError, OverflowError):
        whole = False
    if not whole or numbers[0] < 1 or numbers[-1] >= MOST_BITS:
        raise DocumentError(
            "a damaged description of an aggregate mechanism",
            "a document written by shoal",
            "write it again",
        )
    return sizes, levels, numbers


def pooled(sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Clusters whose sampling variance is told from how effects differ between them: public.

    These are the clusters in which an arm has one unit. A lone one is joined by the cluster of the
    next number of units; with one cluster in all there is none.

    Example:
        >>> pooled(np.array([[1, 1], [1, 2], [5, 5]])).tolist()
        [True, True, False]
        >>> pooled(np.array([[1, 1], [9, 9], [5, 5]])).tolist()
        [True, False, True]
    """
    thin = np.asarray((sizes == 1).any(axis=1))
    if len(thin) == 1:
        return np.zeros(1, dtype=np.bool_)
    if thin.sum() == 1:
        units = sizes.sum(axis=1)
        gap = np.where(thin, np.iinfo(np.int64).max, np.abs(units - units[thin]))
        thin[gap.argmin()] = True
    return thin
