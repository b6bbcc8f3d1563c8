"""What a plan of questions says of each, before any outcome is read, also in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from shoal.errors import printable
from shoal.files.text_table import aligned
from shoal.privacy.budget import show

_HEAD = (
    "question",
    "noise",
    "standard error",
    "without noise",
    "95% interval",
    "times",
    "spikiness",
)


@dataclass(frozen=True)
class Predicted:
    """What a plan says of one question, before any outcome is read.

    Attributes:
        question: Its name.
        noise: Standard deviation of the noise, in the answer's unit.
        spikiness: max|w|/|w|_2 times the root of the units: 1 is the least, and a factor.
        half_width: Of the 95% interval with noise, for the stated spread, in the answer's unit.
        plain_error: Standard error without noise, for the stated spread, in the same unit.
        plain_half_width: Of the interval without noise, in the same unit.
    """

    question: str
    noise: float
    spikiness: float
    half_width: float
    plain_error: float
    plain_half_width: float

    @property
    def standard_error(self) -> float:
        """Of sampling and noise together, for the stated spread, in the answer's unit."""
        return math.hypot(self.noise, self.plain_error)

    @property
    def widening(self) -> float:
        """How much wider the interval is than without noise, as a factor."""
        return self.half_width / self.plain_half_width


@dataclass(frozen=True)
class Said:
    """What the words of a plan are about.

    Attributes:
        units: How many.
        clusters: How many.
        arms: How many.
        by: Columns that make groups, besides arms.
        spread: The stated standard deviation of outcomes.
        ratio: Of the noise to what none is below.
        groups: Groups that were assigned whole; 0 where units were, one by one.
        share: Part of the loss that tells how groups differ.
        clipped: How many of the variances are of clipped sums.
    """

    units: int
    clusters: int
    arms: int
    by: Sequence[str]
    spread: float
    ratio: float
    groups: int = 0
    share: float = 0.0
    clipped: int = 0


def plan_text(predicted: Sequence[Predicted], loss: Fraction, said: Said) -> str:
    """Head, one row a question, and what the columns mean."""
    rows = [_HEAD]
    for each in predicted:
        errors = f"{each.standard_error:.3g}", f"{each.plain_error:.3g}"
        widths = f"+-{each.half_width:.3g}", f"{each.widening:.3g}", f"{each.spikiness:.3g}"
        rows.append((printable(each.question), f"{each.noise:.3g}", *errors, *widths))
    many, clusters = _many(len(predicted), "question"), _many(said.clusters, "cluster")
    head = (
        f"{many} of {said.units} units in {clusters}, {said.arms} arms, epsilon {show(loss)} for "
        "one outcome"
    )
    return "\n".join([head, *aligned(rows), *_meanings(said)])


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _meanings(said: Said) -> list[str]:
    groups = printable(" x ".join(["arm", *said.by]))
    alike = f"outcomes differ alike within {groups}, and units were assigned one by one"
    if said.groups:
        alike = (
            f"{said.groups} groups were assigned whole, and {100 * said.share:.3g}% of the loss "
            "tells how they differ, question by question: with fewer questions intervals are "
            "shorter; predicted for a correlation of 0.3 within groups"
        )
    if said.clipped:
        alike += (
            f"; sums of groups are clipped to three deviations in {said.clipped} of the variances: "
            "a spread that was stated too small makes intervals too short"
        )
    return [
        (
            "noise: standard deviation of the Laplace noise; no Laplace noise of these questions "
            f"has a total variance below 1/{said.ratio:.3g} of this one"
        ),
        (
            "standard error: of sampling and noise, for outcomes of standard deviation "
            f"{said.spread:.4g} (spread); only predictions rest on it, and intervals also allow "
            "for a variance that is known with noise"
        ),
        (f"95% interval: half its width, and how many times as wide as without noise; {alike}"),
        "spikiness: 1 if all units weigh alike; the noise is that of units/spikiness^2 that do",
        "arms, clusters and covariates are public and are published with the release",
    ]
