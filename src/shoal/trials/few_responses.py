"""Effects whose intervals rest on few responses say so: what was released alone decides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from shoal.trials.effects import Effect

# Units of an arm off its most common response: with fewer, a mean is far from normal, and the
# variance of an arm is often estimated as next to nothing (docs/theory/inference.md#few-responses).
FEWEST = 10.0


def units_off(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Units of each arm whose response is not the arm's most common one, as far as they count.

    (1 - share of the most common response) / sum_c (n_c/n)^2/n_{c,a}: an arm whose clusters weigh
    otherwise than its units counts as fewer units.

    Args:
        counts: Units with each response, clusters x arms x responses.

    Returns:
        One number an arm, in units.

    Example:
        >>> units_off(np.array([[[20, 10], [300, 0]]])).round(6).tolist()
        [10.0, 0.0]
    """
    sizes = counts.sum(axis=2)
    weight = sizes.sum(axis=1) / sizes.sum()
    of_arm = counts.sum(axis=0)
    off = 1 - of_arm.max(axis=1) / of_arm.sum(axis=1)
    return np.asarray(off / (weight[:, None] ** 2 / sizes).sum(axis=0))


def warned(effects: Iterable[Effect], counts: NDArray[np.int64]) -> tuple[Effect, ...]:
    """The effects, with a warning where an arm of theirs has few units off its common response.

    Args:
        effects: Of all arms against control, in the arms' order.
        counts: Units with each response, clusters x arms x responses, control first.

    Guarantees: G-TRIAL-COVERAGE.
    """
    off = units_off(counts).tolist()
    return tuple(
        replace(effect, warning=_sentence((effect.control, off[0]), (effect.arm, other)))
        for effect, other in zip(effects, off[1:], strict=True)
    )


def _sentence(*arms: tuple[object, float]) -> str:
    name, off = min(arms, key=lambda arm: arm[1])
    if off >= FEWEST:
        return ""
    return (
        f"{off:.2g} units of arm {printable(str(name))} are off its most common response, as far "
        f"as they count; with fewer than {FEWEST:g} an interval may cover far less than it says"
    )
