"""Pictures of the studies of many cells: losses or errors of all methods, means beside both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal_studies import composition, drawing
from shoal_studies.composition import Measured
from shoal_studies.drawing import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colour, line and marker of a method; ours are red and blue, the paper's grey and brown.
_LOOKS = {
    composition.PAPER: ("#8d99ae", "-", "o"),
    composition.PRINTED: ("#b08968", "--", "s"),
    composition.TRUE: ("#b08968", ":", "x"),
    composition.CLIP: ("#7f4f24", "-", "s"),
    composition.SPARING: ("#7f4f24", "-.", "P"),
    composition.USERS: ("#8d99ae", ":", "o"),
    composition.CLIP_USERS: ("#7f4f24", ":", "s"),
    composition.BALANCED: ("#1f6f8b", "--", "v"),
    composition.EQUALISED: ("#1f6f8b", "-", "^"),
    composition.OWN: ("#d1495b", ":", "D"),
    composition.OPTIMAL: ("#d1495b", "-", "D"),
    composition.BOUND: ("#333333", "--", ""),
}
_WIDE, _SHADE = (composition.OPTIMAL,), "#efefef"
_LEAST = 1e-4


@dataclass(frozen=True)
class Picture:
    """What is drawn of some measurements.

    Attributes:
        title: Above the panels.
        methods: What the legend calls each method, in its order.
        axis: What the numbers are.
        of_errors: Whether they are errors, shown as parts of those of guessing.
    """

    title: str
    methods: Mapping[str, str]
    axis: str
    of_errors: bool


def draw(picture: Picture, found: Mapping[str, Measured]) -> Figure:
    """One panel for means and one for means and variances, both axes logarithmic."""
    from matplotlib.patches import Patch

    figure, axes = drawing.panels(picture.title, len(found))
    shown: Shown = {}
    for axis, (name, measured) in zip(axes, found.items(), strict=True):
        axis.set(xlabel="epsilon per cell", title=name)
        axis.title.set_fontsize(10)
        drawing.losses(axis, _ticks(measured.case.epsilons))
        drawing.errors_by_decade(axis)
        shown |= _lines(axis, picture, measured)
        if not picture.of_errors:
            _guess_losses(axis, measured)
    if picture.of_errors:
        _guess_errors(axes)
    axes[0].set_ylabel(picture.axis)
    shown["grey: guessing has a smaller error" + ("" if picture.of_errors else ", loss 0")] = Patch(
        color=_SHADE
    )
    drawing.legend(figure, shown, handle=2)
    return figure


def _lines(axis: Axes, picture: Picture, measured: Measured) -> Shown:
    shown: Shown = {}
    for method, label in picture.methods.items():
        if method not in measured.of:
            continue
        numbers = measured.mean(method) / (measured.guess if picture.of_errors else 1)
        # A loss of 0: guessing is as good as what is asked for.
        nothing = (measured.of[method] <= _LEAST).any(axis=0)
        colour, style, marker = _LOOKS[method]
        [shown[label]] = axis.plot(
            measured.epsilon, np.where(nothing, np.nan, numbers), style, color=colour,
            marker=marker, markersize=4, linewidth=2.4 if method in _WIDE else 1.4,
            zorder=3 if method in _WIDE else 2,
        )  # fmt: skip
    return shown


def _guess_losses(axis: Axes, measured: Measured) -> None:
    """Grey where guessing meets the error that is allowed."""
    if not measured.uninformative.any():
        return
    last = int(np.flatnonzero(measured.uninformative).max())
    around = measured.epsilon[last : last + 2]
    left, right = axis.get_xlim()
    edge = float(around.prod() ** 0.5) if len(around) > 1 else right
    axis.axvspan(left, edge, color=_SHADE, zorder=0)
    axis.set_xlim(left, right)


def _guess_errors(axes: Sequence[Axes]) -> None:
    """Grey above the error of guessing."""
    low = min(axis.get_ylim()[0] for axis in axes)
    high = max(2.0, *(axis.get_ylim()[1] for axis in axes))
    for axis in axes:
        axis.axhspan(1.0, high, color=_SHADE, zorder=0)
        axis.set_ylim(low, high)


def _ticks(epsilons: Sequence[float]) -> list[float]:
    """As many as there is room for."""
    return [each for each in epsilons if f"{each:g}".strip("0.") in {"1", "2", "3", "5"}]
