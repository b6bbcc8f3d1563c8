"""The noise of the effects of arms as questions, from sizes of groups alone."""

import math

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.theory.questions.weights import scaled
from shoal.trials.questions.disjoint import disjoint_parts
from shoal.trials.questions.extremes import released_sums
from shoal.trials.questions.strategy import SHARES

# Numbers of a matrix that memory holds easily.
_MOST = 2 * 10**7


def noise_of_effects(
    sizes: NDArray[np.int64], width: float, epsilon: float
) -> dict[str, float | None]:
    """Standard deviations of the noise of stratified effects, root mean square over the arms.

    Those of questions have the largest share of the loss that may be spent on means of groups, so
    a plan of these questions has no more noise. By hand every effect has an even part of epsilon,
    Laplace noise of scale (A - 1) U max|w|/epsilon for A - 1 effects, or every arm's mean has
    noise of scale U max|w|/epsilon, whichever is less.

    Source: docs/theory/questions.md#noise-for-many-questions.

    Args:
        sizes: Units of each group, clusters x arms, control first.
        width: U, of the outcome's range.
        epsilon: Of one outcome.

    Returns:
        `questions` and `laplace_by_hand`, in the outcome's unit; None where questions are too many
        to be computed with.

    Example:
        >>> found = noise_of_effects(np.array([[50, 50]]), 1.0, 1.0)
        >>> round(found["laplace_by_hand"], 4), round(found["questions"] / 0.0283, 1)
        (0.0283, 1.2)
    """
    effects, groups = sizes.shape[1] - 1, sizes.size
    weight = sizes.sum(axis=1, keepdims=True) / sizes.sum() / sizes
    most = np.maximum(weight[:, 1:], weight[:, :1]).max(axis=0)
    even = effects**2 * float((most**2).mean())
    means = float((weight[:, 1:].max(axis=0) ** 2 + weight[:, 0].max() ** 2).mean())
    by_hand = math.sqrt(2 * min(even, means)) * width / epsilon
    if effects * groups > _MOST:
        return {"questions": None, "laplace_by_hand": by_hand}
    rows = np.zeros((effects, *sizes.shape))
    rows[:, :, 0] = -weight[:, 0]
    rows[np.arange(effects), :, 1 + np.arange(effects)] = weight[:, 1:].T
    return {
        "questions": _asked(rows.reshape(effects, -1), width, epsilon),
        "laplace_by_hand": by_hand,
    }


def _asked(rows: NDArray[np.float64], width: float, epsilon: float) -> float | None:
    try:
        vectors = scaled(rows, width)
        sums = [released_sums(vectors) @ vectors]
    except InputError:
        return None
    parts = disjoint_parts(rows)
    if parts is not None:
        sums.append(parts)
    scale = min(_scale(rows, each) for each in sums)
    return math.sqrt(2) * width * scale / epsilon / (1 - max(SHARES))


def _scale(rows: NDArray[np.float64], sums: NDArray[np.float64]) -> float:
    """Root mean square of the scales of rows, if sums of a loss of 1 have noise of scale 1."""
    even = sums / np.abs(sums).sum(axis=0).max()
    recovered = rows @ np.linalg.pinv(even, rcond=1e-12)
    return float(np.sqrt((recovered**2).sum(axis=1).mean()))
