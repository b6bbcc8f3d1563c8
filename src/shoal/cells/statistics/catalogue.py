"""Statistics by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal import checks
from shoal.cells.statistics.mean import Mean
from shoal.cells.statistics.share import ShareAbove
from shoal.cells.statistics.variance import Variance
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.cells.statistics.base import Statistic

NAMES = ("mean", "variance", "share_above(60)")
_MOST = 8


def statistic(name: str) -> Statistic:
    """The statistic that a text asks for.

    Args:
        name: `mean`, `variance`, or `share_above(60)` with any public threshold.

    Raises:
        InputError: Another text.

    Example:
        >>> statistic("share_above(-2.50)").name
        'share_above(-2.5)'
    """
    known = {"mean": Mean(), "variance": Variance()}
    text = checks.text(name, "a statistic")
    found = known.get(text) or ShareAbove.parse(text)
    if found is None:
        raise InputError(
            f"a statistic {checks.shown(text)}",
            f"{', '.join(NAMES)} or another threshold",
            "choose one",
        )
    return found


def statistics(names: Sequence[str]) -> tuple[Statistic, ...]:
    """Several statistics, none twice.

    Raises:
        InputError: No text, a text twice, too many, or an unknown one.
    """
    found = tuple(statistic(each) for each in checks.items(names, "statistics", most=_MOST))
    if len({each.name for each in found}) < len(found):
        raise InputError("a statistic twice", "different statistics", "name each once")
    return found
