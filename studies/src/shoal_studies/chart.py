"""One function for all pictures: panels of lines, marks and bars from tidy tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shoal.errors import MissingPartError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row: TypeAlias = "dict[str, str | float | int]"
# Colour, line and marker.
Look: TypeAlias = tuple[str, str, str]

_WIDTH, _HEIGHT, _LEGEND, _COLUMNS = 4.4, 3.9, 2.6, 3
_SHADE = "#efefef"
_CYCLE = ("#1f6f8b", "#d1495b", "#e09f3e", "#6a4c93", "#2a9d8f", "#9c6644", "#8d99ae", "#12455a")


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels side by side, drawn from the rows of a tidy table.

    Attributes:
        rows: One a point; where a column is missing or empty its mark is not drawn.
        x: Column across; texts are categories.
        y: Column along, drawn as a line; a single point of a line is one for every x.
        line: Column that names the lines, in the order of the legend.
        panel: Column that names the panels.
        labels: Of both axes; the columns' names if not given.
        log: Axes that are logarithmic: "x", "y", "xy" or "".
        looks: Colour, line and marker by line.
        names: What the legend calls lines; if given, the others are not drawn.
        marks: Column of dots beside the line, with bars of the column `error`.
        band: Two columns, with a bar between them.
        text: Column that is written at each point.
        shade: By panel the part across ("x") or along ("y") from where, to where, that is grey.
        shade_name: What the legend calls that.
    """

    rows: Sequence[Row] = field(repr=False)
    x: str
    y: str
    line: str = ""
    panel: str = ""
    labels: tuple[str, str] = ("", "")
    log: str = ""
    looks: Mapping[str, Look] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    marks: str = ""
    error: str = ""
    band: tuple[str, str] | None = None
    text: str = ""
    shade: Mapping[str, tuple[str, float | None, float | None]] = field(default_factory=dict)
    shade_name: str = ""

    @property
    def panels(self) -> list[str]:
        """Names of the panels, in the order of the rows."""
        return list(dict.fromkeys(str(row.get(self.panel, "")) for row in self.rows))


def check() -> None:
    """Refuse before the work, not after it."""
    if find_spec("matplotlib") is None:
        raise MissingPartError(
            "matplotlib is not installed", "it draws pictures", 'run pip install "shoal[pictures]"'
        )


def draw(title: str, charts: Sequence[Chart]) -> Figure:
    """All panels of some charts in one picture with one legend."""
    from matplotlib.figure import Figure

    panels = [(chart, name) for chart in charts for name in chart.panels]
    columns = min(len(panels), 2 if len(panels) == 4 else _COLUMNS)
    lines = -(-len(panels) // columns)
    size = (_WIDTH * columns + _LEGEND, _HEIGHT * lines)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    shown: dict[str, Artist] = {}
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis, (chart, name) in zip(axes, panels, strict=False):
        _panel(axis, chart, name, shown)
    for axis in axes[len(panels) :]:
        axis.remove()
    figure.legend(
        list(shown.values()), list(shown), loc="outside right center", frameon=False, fontsize=8.5
    )
    return figure


def _panel(axis: Axes, chart: Chart, name: str, shown: dict[str, Artist]) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set(xlabel=chart.labels[0] or chart.x, ylabel=chart.labels[1] or chart.y)
    axis.set_title(name, fontsize=10)
    lines: dict[str, list[Row]] = {}
    for row in chart.rows:
        line = str(row.get(chart.line, chart.y))
        if str(row.get(chart.panel, "")) == name and (not chart.names or line in chart.names):
            lines.setdefault(line, []).append(row)
    most = max(map(len, lines.values()))
    for at, (line, rows) in enumerate(lines.items()):
        look = chart.looks.get(line, (_CYCLE[at % len(_CYCLE)], "-", "o"))
        artist = _line(axis, chart, rows, look, everywhere=len(rows) == 1 < most)
        shown.setdefault(chart.names.get(line, line), artist)
    for side in ("x", "y"):
        if side in chart.log:
            _logarithmic(axis, side)
    if isinstance(chart.rows[0][chart.x], str) and most > len(_CYCLE):
        axis.tick_params("x", rotation=90, labelsize=7)
    if name in chart.shade:
        shown[chart.shade_name] = _shade(axis, *chart.shade[name])


def _line(axis: Axes, chart: Chart, rows: list[Row], look: Look, *, everywhere: bool) -> Artist:
    colour, style, marker = look
    x = [row[chart.x] for row in rows]
    y = _numbers(rows, chart.y)
    artist: Artist
    if everywhere:
        artist = axis.axhline(float(y[0]), color=colour, linestyle=style, linewidth=1.4)
    else:
        [artist] = axis.plot(
            x, y, linestyle=style, color=colour, marker=marker, markersize=4, linewidth=1.4
        )
    if chart.band:
        low, high = (_numbers(rows, each) for each in chart.band)
        axis.vlines(x, low, high, color=colour, alpha=0.35, linewidth=4)
    if chart.marks or chart.error:
        dots, bars = (_numbers(rows, each) for each in (chart.marks or chart.y, chart.error))
        axis.errorbar(
            x, dots, bars, fmt="x" if chart.marks else "none", color=colour, markersize=4,
            elinewidth=0.8, capsize=2,
        )  # fmt: skip
    for row in rows if chart.text else ():
        axis.annotate(str(row[chart.text]), (row[chart.x], row[chart.y]), fontsize=7)
    return artist


def _numbers(rows: list[Row], name: str) -> np.ndarray:
    """A column, with nan where it is missing or empty."""
    found = [row.get(name, "") for row in rows]
    return np.array([np.nan if each == "" else float(each) for each in found])


def _logarithmic(axis: Axes, side: str) -> None:
    """With marks at 1, 2 and 5, and plain numbers instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set(**{f"{side}scale": "log"})
    across = axis.xaxis if side == "x" else axis.yaxis
    low, high = across.get_view_interval()
    few = high > 1000 * low
    across.set_major_locator(LogLocator(subs=(1.0,) if few else (1.0, 2.0, 5.0)))
    across.set_minor_formatter(NullFormatter())
    across.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _shade(axis: Axes, side: str, low: float | None, high: float | None) -> Artist:
    """Grey between two places, or to the end of the axis."""
    ends = axis.get_xlim() if side == "x" else axis.get_ylim()
    span = axis.axvspan if side == "x" else axis.axhspan
    found = span(
        ends[0] if low is None else low, ends[1] if high is None else high, color=_SHADE, zorder=0
    )
    axis.set(**{f"{side}lim": (min(ends[0], low or ends[0]), max(ends[1], high or ends[1]))})
    return found
