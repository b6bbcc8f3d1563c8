"""Pictures of studies: errors against the loss, one look a mechanism in every study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from shoal.errors import MissingPartError
from shoal_studies.measure import Curve

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

# What is drawn, by its name in the legend.
Shown = dict[str, "Artist"]

_PANEL, _HEIGHT, _LEGEND = 4.2, 3.9, 2.4
_WIDE, _CAPACITY = 4.6, 2.6
_COLOURS = {
    "baseline": "#8d99ae",
    "array_averaging": "#1f6f8b",
    "opt_array_averaging": "#12455a",
    "levy": "#e09f3e",
    "quantile": "#6a4c93",
    "akmv": "#9c6644",
    "worst_case_optimal": "#2a9d8f",
    "adaptive": "#d1495b",
}
_NEUTRAL = "#444444"
_SOLID, _DASHED, _DOTTED = "-", "--", ":"


def check() -> None:
    """Refuse before the work, not after it."""
    if find_spec("matplotlib") is None:
        raise MissingPartError(
            "matplotlib is not installed", "it draws pictures", 'run pip install "shoal[pictures]"'
        )


def panels(title: str, count: int, *, legend: bool = True) -> tuple[Figure, list[Axes]]:
    """An empty picture with some panels side by side."""
    width = _PANEL * count + (_LEGEND if legend else 0) + (1 if count == 1 else 0)
    return sheet(title, (width, _HEIGHT), count, alike=True)


def canvas(title: str, columns: int, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Wider empty panels with axes of their own, and room for a legend on the right."""
    return sheet(title, (_WIDE * columns + _CAPACITY, _HEIGHT * rows), columns, rows)


def sheet(
    title: str,
    size: tuple[float, float],
    columns: int,
    rows: int = 1,
    *,
    alike: bool = False,
    widths: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Empty panels in the look of all studies, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    made = figure.subplots(rows, columns, squeeze=False, sharey=alike, width_ratios=widths)
    axes = list(made.ravel())
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, color="#e5e5e5", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def legend(figure: Figure, shown: Shown, *, handle: float = 3) -> Legend:
    """Names of all lines, outside."""
    return figure.legend(
        list(shown.values()), list(shown), loc="outside right center", frameon=False, fontsize=8.5,
        handlelength=handle,
    )  # fmt: skip


def errors(
    title: str,
    collections: Mapping[str, Sequence[Curve]],
    *,
    unit: str = "km/h",
    by_style: bool = False,
) -> Figure:
    """Errors against the loss, one panel a collection, error axis logarithmic."""
    figure, axes = panels(title, len(collections))
    shown: Shown = {}
    for axis, (name, curves) in zip(axes, collections.items(), strict=True):
        for curve in curves:
            shown[curve.line.label] = _draw(axis, curve)
        errors_by_decade(axis)
        axis.set_xlabel("epsilon")
        axis.set_title(name if len(collections) > 1 else "", fontsize=10)
    axes[0].set_ylabel(f"mean absolute error, {unit}")
    names = legend(figure, shown, handle=2)
    if by_style:
        for each in names.get_lines():
            each.set_color(_NEUTRAL)
    return figure


def _draw(axis: Axes, curve: Curve) -> Line2D:
    line = curve.line
    style = _SOLID
    if line.settings.get("grouping") == "wrap_around" or "optimised" in line.settings.values():
        style = _DASHED
    if line.stretch != 1:
        style = _DOTTED
    many = len(curve.epsilon) > 10
    [drawn] = axis.plot(
        curve.epsilon,
        curve.error,
        style,
        color=_COLOURS[line.method],
        marker="." if many else "o",
        markersize=4,
        linewidth=2.2 if line.method == "adaptive" else 1.4,
        label=line.label,
    )
    return drawn


def errors_by_decade(axis: Axes) -> None:
    """A logarithmic error axis with marks at 1, 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_minor_formatter(NullFormatter())
    plain_numbers(axis.yaxis)


def losses(axis: Axes, at: Sequence[float]) -> None:
    """A logarithmic axis of losses, with marks at these."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(at))
    axis.xaxis.set_minor_formatter(NullFormatter())
    plain_numbers(axis.xaxis)


def plain_numbers(side: Axis) -> None:
    """0.1, 0.2, 0.5, 1 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter

    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
