"""Which units decide how much noise questions need: of many units a few thousand."""

import numpy as np
from numpy.typing import NDArray

from shoal.theory.questions.laplace_strategy import laplace_strategy

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
MOST = 4000
# Sums of other units may be this much larger than those of the chosen ones.
_BEYOND, _ROUNDS, _MORE = 1.001, 4, 500


def extremes(vectors: Floats, most: int = MOST) -> Whole:
    """Units of different vectors: those that are far out together, and in each question.

    Noise that is enough for them is nearly enough for all; a lower bound for them is one for all.

    Args:
        vectors: Sensitivities, shape (questions, units).
        most: About how many are chosen.

    Example:
        >>> extremes(np.array([[1.0, 0.0, 1.0, 3.0]]), 2).tolist()
        [3]
    """
    if vectors.shape[1] <= most:
        return np.arange(vectors.shape[1])
    first = np.sort(np.unique(vectors, axis=1, return_index=True)[1])
    if len(first) <= most:
        return first
    own = vectors[:, first]
    values, basis = np.linalg.eigh(own @ own.T / own.shape[1])
    root = basis / np.sqrt(np.maximum(values, values[-1] * 1e-12))
    together = ((root.T @ own) ** 2).sum(axis=0)
    part = -(-most // 2)
    chosen = [np.argsort(-together, kind="stable")[:part]]
    alone = -(-part // len(own))
    chosen += [np.argsort(-np.abs(row), kind="stable")[:alone] for row in own]
    return first[np.unique(np.concatenate(chosen))]


def released_sums(vectors: Floats) -> Floats:
    """The sums of questions that are released, shape (numbers, questions).

    Found for the extreme units; units that are beyond them in these sums are added, and it is
    found again. The loss of all units is computed from whole numbers afterwards.

    Args:
        vectors: Sensitivities, shape (questions, units).

    Raises:
        InputError: Questions that nearly depend on others.
    """
    chosen = extremes(vectors)
    found = laplace_strategy(vectors[:, chosen]).released
    for _ in range(_ROUNDS if len(chosen) < vectors.shape[1] else 0):
        sizes = np.abs(found @ vectors).sum(axis=0)
        if float(sizes.max()) <= _BEYOND * float(sizes[chosen].max()):
            break
        beyond = np.argsort(-sizes, kind="stable")[:_MORE]
        chosen = np.union1d(chosen, beyond)
        found = laplace_strategy(vectors[:, chosen]).released
    return np.asarray(found, dtype=np.float64)
