"""Statistics by name for the second opinion: ranges, and what users, bounding and rounding do.

Everything is a share of the statistic's range. The forms are derived once more, as
sums that need fewer cases than the planner's. Nothing is imported from statistics, planning,
mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.verification.cells.facts import GAUSSIAN, LAPLACE
from shoal.verification.strict import rational

if TYPE_CHECKING:
    from shoal import documents

MEAN, VARIANCE = "mean", "variance"
ALLOCATIONS = ("balanced", "equalised", "uniform")
BOUNDINGS = ("clip_user", "optimal")
_SHARE = re.compile(r"share_above\((-?[0-9][-+.0-9e]{0,29})\)")
_MOST = 8
# What rounding the means of users may add: to the loss of a variance, and of both moments. A double
# may fall short of it by its last places.
_DOUBLE = Fraction(1, 2**45)
VARIANCE_MARGIN = 1 + Fraction(1, 2**20) - _DOUBLE
JOINT_MARGIN = 1 + Fraction(1, 2**27) - _DOUBLE


def refused(plan: documents.Document) -> str | None:
    """Why statistics, way of release and noise of a plan do not go together; None if they do."""
    numbers, request = plan["numbers"], plan["request"]
    names = numbers["statistics"]
    sound = isinstance(names, list) and 1 <= len(names) <= _MOST and all(map(_known, names))
    if not sound or len(set(names)) < len(names):
        return "statistics that do not exist, or one twice"
    if names != request["statistics"]:
        return "other statistics than asked for"
    if type(numbers["joint"]) is not bool or (
        numbers["joint"] and not {MEAN, VARIANCE} <= {*names}
    ):
        return "a joint release without mean and variance"
    if numbers["noise"] not in {LAPLACE, GAUSSIAN}:
        return "an unknown noise"
    if numbers["noise"] == GAUSSIAN and not rational(request["delta"]):
        return "Gaussian noise without a delta"
    return None


def _known(name: object) -> bool:
    if not isinstance(name, str) or name in {MEAN, VARIANCE}:
        return isinstance(name, str)
    match = _SHARE.fullmatch(name)
    if match is None or not math.isfinite(x := float(match[1])):
        return False
    # The shortest text of the threshold, not just any.
    return match[1] == repr(x).removesuffix(".0")


def statistic_range(name: str, lo: Fraction, width: Fraction) -> tuple[Fraction, Fraction]:
    """Lower end and length of the range of a statistic, in its unit."""
    if name == MEAN:
        return lo, width
    return Fraction(0), (width / 2) ** 2 if name == VARIANCE else Fraction(1)


def variance_moves(part: int, kept: int, total: int) -> Fraction:
    """Most that a user of mass w moves a variance over its range, W - w of the mass being others'.

    With z in [-1, 1] and A = sum of w z over the others, the variance is largest over the user's
    values where z^2 = 1 and (w z + A)^2 is least, max(0, |A| - w)^2, and least where
    w z^2 - (w z + A)^2 = -A^2/(1 - w). The difference w - max(0, |A| - w)^2 + A^2/(1 - w) grows
    with |A| <= W - w.

    Args:
        part: w times the total.
        kept: W times the total.
        total: Above 0.
    """
    if part in {0, total}:
        return Fraction(part, total)
    others = kept - part
    alike = Fraction(others**2, total * (total - part))
    return Fraction(part, total) - Fraction(max(0, others - part) ** 2, total**2) + alike


def variance_errs(missing: Fraction, distance: Fraction) -> tuple[Fraction, Fraction]:
    """Bias of a variance over its range, and the middle that is added to the estimate.

    With a mass d missing, which lies in the middle of the bounds, and no weight above its share,
    the variance is at least d (1 - d) below and at most 3 d (1 - d) above the estimate; from
    d = 1/2 on at most 1 - d (1 - d) above. Otherwise the mass by which weights and shares differ
    is moved like a user's.
    """
    if missing > 0:
        below = missing * (1 - missing)
        above = 3 * below if 2 * missing <= 1 else 1 - below
        return (above + below) / 2, (above - below) / 2
    moved = min(distance, Fraction(1, 2))
    return 4 * moved * (1 - moved), Fraction(0)


def rounding(name: str, ticks: Fraction, means: Fraction) -> Fraction:
    """Most that ticks and the means of users move a statistic, over its range.

    A standard deviation moves by no more than the values, u; its square, at most 1/4 of the
    squared width, by u + u^2. Whether a tick is above a threshold is exact.
    """
    if name == VARIANCE:
        moved = ticks + means
        return 4 * (moved + moved**2)
    return ticks + means if name == MEAN else means


def moments_rate(first: Fraction, second: Fraction) -> Fraction:
    """J: loss by both moments of a user with all records, with Laplace noise.

    Two points of the parabola (y, y^2), |y| <= 1/2, that are D apart in y are at most D (1 - D)
    apart in y^2: the largest D/b1 + D (1 - D)/b2.

    Args:
        first: b1 of the mean over the width.
        second: b2 of the mean square over the squared width.
    """
    apart = min(Fraction(1), (1 + second / first) / 2)
    return apart / first + apart * (1 - apart) / second
