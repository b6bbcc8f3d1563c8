"""One function for all pictures: panels of lines, marks and bars from tidy tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row: TypeAlias = "dict[str, str | float | int]"

_WIDTH = 4.4
_HEIGHT = 3.9
_LEGEND = 2.6
_COLUMNS = 3
_MANY = 50
_GREY = "#efefef"


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels side by side, drawn from the rows of a tidy table, one a point.

    Columns are across (`x`; texts are categories) and along (`y`, drawn as a line; a single point
    of a line is one for every x); those that name the lines and the panels; dots (`marks`) beside
    the line with bars of `error`, bars alone over categories; one that is written at each point
    (`text`). Where one is missing or empty its mark is not drawn. `labels` are of both axes, `log`
    names the logarithmic ones; up to the last place where `grey` is not 0 a panel is grey.
    """

    rows: Sequence[Row] = field(repr=False)
    x: str
    y: str
    line: str = ""
    panel: str = ""
    labels: tuple[str, str] = ("", "")
    log: str = ""
    marks: str = ""
    error: str = ""
    text: str = ""
    grey: str = ""

    @property
    def panels(self) -> list[str]:
        """Names of the panels, in the order of the rows."""
        return list(dict.fromkeys(str(row.get(self.panel, "")) for row in self.rows))

    @property
    def lines(self) -> dict[str, list[Row]]:
        """Rows of each line."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(str(row.get(self.line, self.y)), []).append(row)
        return found


def draw(title: str, charts: Sequence[Chart]) -> Figure:
    """All panels of some charts in one picture; what is printed is dashed, in the line's colour."""
    from shoal.pictures import shapes

    panels = [(chart, name) for chart in charts for name in chart.panels]
    columns = min(len(panels), 2 if len(panels) == 4 else _COLUMNS)
    lines = -(-len(panels) // columns)
    size = (_WIDTH * columns + _LEGEND, _HEIGHT * lines)
    figure, axes = shapes.new(title, size, (lines, columns))
    order = list(dict.fromkeys(_plain(line) for chart in charts for line in chart.lines))
    shown: dict[str, Artist] = {}
    for axis, (chart, name) in zip(axes, panels, strict=False):
        _panel(axis, chart, name, order, shown)
    for axis in axes[len(panels) :]:
        axis.remove()
    figure.legend(
        list(shown.values()), list(shown), loc="outside right center", frameon=False, fontsize=8.5
    )
    return figure


def _plain(line: str) -> str:
    return line.removesuffix(", as printed")


def _panel(axis: Axes, chart: Chart, name: str, order: list[str], shown: dict[str, Artist]) -> None:
    from shoal.pictures import shapes

    axis.set(xlabel=chart.labels[0] or chart.x, ylabel=chart.labels[1] or chart.y)
    axis.set_title(name, fontsize=10)
    here = {
        line: [row for row in rows if str(row.get(chart.panel, "")) == name]
        for line, rows in chart.lines.items()
    }
    most = max(map(len, here.values()))
    for line, rows in here.items():
        if rows:
            place = order.index(_plain(line))
            shown.setdefault(line, _line(axis, chart, line, rows, place, most))
    for side in chart.log:
        shapes.logarithmic(axis, side)
    grey = [float(row[chart.x]) for row in chart.rows
            if chart.grey and row[chart.grey] and row[chart.panel] == name]  # fmt: skip
    if grey:
        left, right = axis.get_xlim()
        text = f"grey: {chart.grey.replace('_', ' ')}"
        shown[text] = axis.axvspan(left, max(grey), color=_GREY, zorder=0)
        axis.set_xlim(left, right)
    if isinstance(chart.rows[0][chart.x], str) and most > len(shapes.COLOURS):
        axis.tick_params("x", rotation=90, labelsize=7)


def _line(axis: Axes, chart: Chart, line: str, rows: list[Row], place: int, most: int) -> Artist:
    from shoal.pictures.shapes import COLOURS, MARKERS

    colour = COLOURS[place % len(COLOURS)]
    style = "--" if "printed" in line else ":" if place >= len(COLOURS) else "-"
    marker = MARKERS[(place + place // len(COLOURS)) % len(MARKERS)] if len(rows) < _MANY else ""
    x, y = [row[chart.x] for row in rows], _numbers(rows, chart.y)
    words = isinstance(x[0], str)
    look: dict[str, Any] = {"color": colour, "linestyle": "" if chart.text or words else style}
    artist: Artist
    if len(rows) == 1 < most and not chart.text:
        artist = axis.axhline(float(y[0]), **look)
    else:
        [artist] = axis.plot(x, y, marker=marker, markersize=4, **look)
    if chart.marks or chart.error:
        dots, bars = (_numbers(rows, each) for each in (chart.marks or chart.y, chart.error))
        dot = "x" if chart.marks and not words else "none"
        axis.errorbar(x, dots, bars, fmt=dot, color=colour, ms=4, elinewidth=0.8, capsize=2)
    for row in rows if chart.text else ():
        axis.annotate(str(row[chart.text]), (row[chart.x], row[chart.y]), fontsize=7)
    return artist


def _numbers(rows: list[Row], name: str) -> np.ndarray:
    """A column, with nan where it is missing or empty."""
    found = [row.get(name, "") for row in rows]
    return np.array([np.nan if each == "" else float(each) for each in found])
