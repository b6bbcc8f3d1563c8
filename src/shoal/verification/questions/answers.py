"""Loss, values, standard errors and intervals of questions, again.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.verification.questions.facts import BITS
from shoal.verification.questions.weights import arm_rows
from shoal.verification.strict import real
from shoal.verification.trials.spread import normal_laplace, student

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.documents import Document
    from shoal.verification.questions.facts import Facts

    Floats = NDArray[np.float64]

TICKS: int = 2**20
CONFIDENCE = 0.95
# What a noisy variance is raised by, in parts of its noise, at 95%: by b2/b1^2.
_KNOTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_RAISED = (0.03, 0.07, 0.18, 0.43, 0.65, 0.75, 0.78, 0.80)
# Of half an interval, by which numbers may be off; of a row, by which it may miss its question.
_CLOSE, _MISSED = 1e-6, 1e-8
_LARGEST = 2.0**60


def exact_loss(facts: Facts) -> Fraction | None:
    """What no unit loses more than, or None where second moments are not free.

    A unit moves number k by at most the whole steps above |a| 2^20/step; all K of them and the
    second moments of the middle cost K steps of rounding more than E, the most of the former.
    """
    size = np.abs(facts.rows)
    quotient, rest = np.divmod(size * TICKS, facts.steps[:, None])
    moved = quotient + (rest > 0)
    if float(moved.astype(np.float64).sum(axis=0).max()) > _LARGEST:
        raise ValueError
    most = int(moved.sum(axis=0).max())
    if most * facts.moment_step < TICKS * TICKS:
        return None
    return Fraction(most + len(facts.steps), 2**BITS)


@dataclass(frozen=True, eq=False)
class Found:
    """What a question's numbers tell.

    Attributes:
        value: The answer.
        error: Its standard error.
        half: Half its interval.
    """

    value: float
    error: float
    half: float


def recovered(facts: Facts, rows: Floats) -> tuple[Floats, bool]:
    """Questions as sums of released numbers, and whether they are such sums."""
    released = facts.rows * facts.scale[:, None]
    found: Floats = np.asarray(np.linalg.lstsq(released.T, rows.T, rcond=1e-12)[0].T, np.float64)
    off = np.sqrt(((found @ released - rows) ** 2).sum(axis=1))
    return found, bool((off <= _MISSED * np.sqrt((rows**2).sum(axis=1))).all())


def answers(facts: Facts, results: Document, rows: Floats) -> list[Found]:
    """Values and intervals of all questions."""
    step = facts.steps * facts.scale * (facts.width / TICKS)
    numbers = np.array([float(each) for each in results["numbers"]]) * step
    # Discrete Laplace noise of scale t has the variance 2 r/(1 - r)^2, r = exp(-1/t).
    rate = 2.0**-BITS
    noise = step**2 * (2 * math.exp(-rate) / math.expm1(-rate) ** 2)
    means = np.array(arm_rows(facts))
    of_arms, _ = recovered(facts, means)
    away, off = of_arms @ numbers, of_arms**2 @ noise
    variances, loose = _arms(facts, results["moments"], away, off)
    sums, _ = recovered(facts, rows)
    found = []
    for row, own in zip(rows, sums, strict=True):
        part = [float((row[facts.arm == at] ** 2).sum()) for at in range(len(facts.arms))]
        told = math.fsum(p * v for p, v in zip(part, variances, strict=True))
        doubt = math.sqrt(math.fsum((p * b) ** 2 for p, b in zip(part, loose, strict=True)))
        value = float(own @ numbers) + facts.middle * math.fsum(row)
        added = float(own**2 @ noise)
        few = min(int((facts.arm == at).sum()) - 1 for at, p in enumerate(part) if p > 0)
        error = math.sqrt(max(told, 0.0) + added)
        found.append(Found(value, error, _half(told, added, doubt, float(few))))
    return found


def _arms(
    facts: Facts, moments: list[int], away: Floats, off: Floats
) -> tuple[list[float], list[float]]:
    """Variances of outcomes within arms, and the scales of their noise."""
    unit = facts.moment_step * (facts.width / TICKS) ** 2
    variances, loose = [], []
    for at, number in enumerate(moments):
        n = int((facts.arm == at).sum())
        square = number * unit / n
        variances.append(n / (n - 1) * (square - float(away[at]) ** 2 + float(off[at])))
        mean = min(float(away[at]) ** 2, facts.width**2 / 4)
        parts = (2.0**BITS * unit / n) ** 2, 2 * mean * off[at], 2.5 * off[at] ** 2
        loose.append(n / (n - 1) * math.sqrt(math.fsum(map(float, parts))))
    return variances, loose


def _half(told: float, added: float, doubt: float, degrees: float) -> float:
    """Half an interval: the wider of those for one Laplace variable and for normal noise."""
    ratio = doubt / (added / 2)
    raise_by = float(np.interp(math.log(max(ratio, _KNOTS[0])), np.log(_KNOTS), _RAISED))
    few = (student(degrees, CONFIDENCE) / student(math.inf, CONFIDENCE)) ** 2
    sampling = few * (max(told, 0.0) + raise_by * doubt)
    normal = student(math.inf, CONFIDENCE) * math.sqrt(sampling + added)
    return max(normal, normal_laplace(CONFIDENCE, sampling, added, 1.0))


def hold(names: list[str], found: list[Found], stated: list[Document]) -> list[tuple[bool, str]]:
    """Whether questions, values, standard errors and intervals are those that follow."""
    if [each["question"] for each in stated] != names:
        return [(False, "other questions")] * 3
    values = errors = spans = True
    for each, told in zip(found, stated, strict=True):
        slack = _CLOSE * each.half + 1e-12 * abs(each.value)
        low, high = told["interval"]
        values &= abs(real(told["value"]) - each.value) <= slack
        errors &= abs(real(told["standard_error"]) - each.error) <= slack
        spans &= abs(real(low) - (each.value - each.half)) <= slack
        spans &= abs(real(high) - (each.value + each.half)) <= slack
    shown = ", ".join(f"{each.value:.6g}" for each in found[:3])
    worst = max(each.error for each in found)
    return [
        (values, f"{len(found)} answers: {shown}{', ...' if len(found) > 3 else ''}"),  # noqa: PLR2004
        (errors, f"at most {worst:.6g}"),
        (spans, f"at confidence {CONFIDENCE:g}"),
    ]
