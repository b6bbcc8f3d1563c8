"""The estimator of the smallest error: the three regimes of Theorem 1.2.2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.means.estimators import ClippedPlan
from shoal.theory.clipping import Moment
from shoal.theory.regimes import regime
from shoal.theory.trilemma import trilemma
from shoal_studies.chart import Chart, Row
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COLOURS,
    COMBINED,
    SAMPLED,
    WORDS,
    Asked,
    Sampled,
)
from shoal_studies.registry import Finding, Study, short, spans, study
from shoal_studies.simulate import Effort
from shoal_studies.unbiased_exact import worst

EPSILON, ORDER = 0.01, 4.0
_USERS = tuple(10**k for k in range(2, 7))
_DELTAS = tuple(10.0**k for k in range(-8, 0))
_BIASES = (0.0, *(10.0**k for k in range(-6, 0)))
_FIXED_BIAS, _FIXED_DELTA = 1e-3, 1e-3
_METHODS = (CLIPPED, COMBINED, SAMPLED)
_GRID = 17
BY_DELTA, BY_BIAS = "users and delta", "users and bias"


@dataclass(frozen=True, eq=False)
class Place:
    """One setting, and who has the smallest error there."""

    part: str
    n: int
    delta: float
    bias: float
    printed: dict[str, float]
    ours: dict[str, float]
    worst: float
    bound: float

    @property
    def best(self) -> str:
        """By our certificates."""
        return min(self.ours, key=lambda name: self.ours[name])

    @property
    def best_printed(self) -> str:
        """By the paper's."""
        return min(self.printed, key=lambda name: self.printed[name])

    @property
    def row(self) -> Row:
        """For the table."""
        return {
            "map": self.part,
            "users": self.n,
            "delta": self.delta,
            "bias": self.bias,
            "best": WORDS[self.best],
            "best_by_theory": WORDS[self.best_printed],
            **{f"{WORDS[name]}_certificate": short(self.ours[name]) for name in _METHODS},
            **{f"{WORDS[name]}_by_theory": short(self.printed[name]) for name in _METHODS},
            "worst_two_points": short(self.worst),
            "bound": short(self.bound),
        }


def place(part: str, n: int, delta: float, bias: float) -> Place:
    """Plan all three.

    The clipped mean takes the best of some budgets up to the bias.

    Example:
        >>> found = place(BY_DELTA, 1000, 0.1, 0.001)
        >>> found.best, found.worst <= found.ours[found.best]
        ('sampled_mean', True)
    """
    asked = Asked(n, (Moment(ORDER, 1.0),), EPSILON, delta)
    found = regime(n, EPSILON, delta, bias, (ORDER, 1.0))
    parts: dict[str, ClippedPlan | Sampled] = {COMBINED: asked.combined(), SAMPLED: asked.sampled()}
    if bias > 0:
        budgets = [bias * 10.0 ** (-k / 4) for k in range(_GRID)]
        budgets += [min(found.clip_bias, bias)] if found.clip_bias > 0 else []
        every = [asked.clipped(each) for each in budgets]
        parts[CLIPPED] = min(every, key=lambda each: each.rmse_bound)
    ours = {name: parts[name].rmse_bound if name in parts else math.inf for name in _METHODS}
    best = min(ours, key=lambda name: ours[name])
    bound = trilemma(n, EPSILON, delta, bias, (ORDER, 1.0)).rmse
    return Place(part, n, delta, bias, found.errors, ours, worst(parts[best])[1].rmse, bound)


@study(
    "004-regimes",
    "Which estimator has the smallest error: three regimes",
    "paper 004, theorem 1.2.2",
)
def regimes(effort: Effort) -> Study:
    """Errors on two points are exact; nothing is simulated."""
    step = 1 if effort.full else 2
    users = _USERS[::step]
    wanted = [(BY_DELTA, n, delta, _FIXED_BIAS) for delta in _DELTAS[::step] for n in users]
    wanted += [(BY_BIAS, n, _FIXED_DELTA, bias) for bias in _BIASES[::step] for n in users]
    places = [place(*each) for each in effort.progress(wanted, len(wanted))]
    rows = [each.row for each in places]
    shown: list[Row] = [
        {**row, "panel": f"{row['map']}; figures: error over lower bound",
         "level": math.log10((each.delta if each.part == BY_DELTA else each.bias) or 1e-7),
         "over": f"{each.ours[each.best] / each.bound:.2g}"}
        for row, each in zip(rows, places, strict=True)
    ]  # fmt: skip
    looks = {WORDS[name]: (colour, "", "s") for name, colour in COLOURS.items() if name in WORDS}
    labels = ("users", "log10 of delta, or of the bias (lowest: none)")
    chart = Chart(shown, "users", "level", "best", "panel", labels, "x", looks, text="over")
    return Study(rows, [chart], _findings(places))


def _findings(places: Sequence[Place]) -> list[Finding]:
    counts = {name: sum(each.best == name for each in places) for name in _METHODS}
    same = sum(each.best == each.best_printed for each in places)
    gain = np.array([each.printed[each.best_printed] / each.ours[each.best] for each in places])
    over = np.array([each.ours[each.best] / each.bound for each in places])
    reached = np.array([each.worst / each.ours[each.best] for each in places])
    clipped = np.array([each.best == CLIPPED for each in places])
    return [
        Finding("settings in which an estimator certifies the least error", "each in some",
                ", ".join(f"{WORDS[name]} {each}" for name, each in counts.items()),
                min(counts.values()) > 0),
        Finding("settings in which `shoal.bounds.regime` names the same one", "all",
                f"{same} of {len(places)}", same == len(places)),
        spans("certificate of the theory over the planned estimator's", gain),
        spans("least certificate over the lower bound, of the clipped mean", over[clipped]),
        spans("least certificate over the lower bound, of others: up to sqrt(n)", over[~clipped]),
        spans("error on two points over the certificate", reached, "at most 1", reached <= 1),
    ]  # fmt: skip
