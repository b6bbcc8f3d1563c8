"""The estimator of the smallest error: the three regimes of Theorem 1.2.2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.means.estimators import ClippedPlan
from shoal.theory.clipping import Moment
from shoal.theory.regimes import regime
from shoal.theory.trilemma import trilemma
from shoal_studies import drawing, unbiased_drawing
from shoal_studies.drawing import Shown
from shoal_studies.measure import Effort
from shoal_studies.paper_004_estimators import CLIPPED, COMBINED, SAMPLED, WORDS, Asked, Sampled
from shoal_studies.study import Outcome, Row, Study, short, span
from shoal_studies.unbiased_exact import worst

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def _run(effort: Effort) -> Outcome:
    drawing.check()
    step = 1 if effort.full else 2
    users = _USERS[::step]
    wanted = [(BY_DELTA, n, delta, _FIXED_BIAS) for delta in _DELTAS[::step] for n in users]
    wanted += [(BY_BIAS, n, _FIXED_DELTA, bias) for bias in _BIASES[::step] for n in users]
    places = [place(*each) for each in effort.progress(wanted, len(wanted))]
    return Outcome([each.row for each in places], _picture(places), _reading(places))


def _picture(places: Sequence[Place]) -> Figure:
    title = f"Least certified error, epsilon {EPSILON:g}, order {ORDER:g}"
    figure, axes = drawing.canvas(title, 2)
    shown: Shown = {}
    for axis, part in zip(axes, (BY_DELTA, BY_BIAS), strict=True):
        these = [each for each in places if each.part == part]
        name = "delta" if part == BY_DELTA else "bias"
        levels = sorted({getattr(each, name) for each in these})
        _tiles(axis, shown, these, [levels.index(getattr(each, name)) for each in these])
        fixed = f"bias {_FIXED_BIAS:g}" if part == BY_DELTA else f"delta {_FIXED_DELTA:g}"
        axis.set(xscale="log", xlabel="users", ylabel=name)
        axis.set_yticks(range(len(levels)), [f"{each:g}" for each in levels])
        axis.set_title(f"{part}, {fixed}; figures: error over lower bound", fontsize=9)
    drawing.legend(figure, shown)
    return figure


def _tiles(axis: Axes, shown: Shown, places: Sequence[Place], at: Sequence[int]) -> None:
    for each, height in zip(places, at, strict=True):
        colour = unbiased_drawing.COLOURS[each.best]
        axis.plot([each.n], [height], "s", color=colour, markersize=19, alpha=0.75)
        # A small square for the legend.
        [shown[WORDS[each.best]]] = axis.plot([], [], "s", color=colour, alpha=0.75)
        text = f"{each.ours[each.best] / each.bound:.2g}"
        axis.text(each.n, height, text, ha="center", va="center", fontsize=7)


def _reading(places: Sequence[Place]) -> str:
    counts = {name: sum(each.best == name for each in places) for name in _METHODS}
    same = sum(each.best == each.best_printed for each in places)
    gain = np.array([each.printed[each.best_printed] / each.ours[each.best] for each in places])
    over = np.array([each.ours[each.best] / each.bound for each in places])
    reached = np.array([each.worst / each.ours[each.best] for each in places])
    biased = over[[each.best == CLIPPED for each in places]]
    free = over[[each.best != CLIPPED for each in places]]
    below = bool((reached <= 1).all())
    return (
        f"Of {len(places)} settings with epsilon {EPSILON:g} and order {ORDER:g} the clipped mean "
        f"certifies the least error in {counts[CLIPPED]}, the combined one in {counts[COMBINED]}, "
        f"the sampled one in {counts[SAMPLED]}: all three regimes of Theorem 1.2.2. "
        f"`shoal.bounds.regime` names the same one in {same}; its certificate is "
        f"{span(gain)} times the planned estimator's. The least certificate is {span(biased)} "
        f"times the lower bound where it is the clipped mean's, {span(free)} times elsewhere: for "
        "little bias and a delta the bound leaves a gap of up to sqrt(n). Two points make the best "
        f"estimator err {span(reached)} times its certificate, never more: "
        f"{'yes' if below else 'no'}; this is exact, nothing is simulated."
    )


REGIMES = Study(
    "004-regimes",
    "Which estimator has the smallest error: three regimes",
    "paper 004, theorem 1.2.2",
    _run,
)
