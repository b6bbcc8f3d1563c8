"""The picture of a frontier."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

import shoal
from shoal.errors import InputError
from shoal.pictures.frontier import _spread, draw
from tests.support import occupancies

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

PLAN = shoal.plan(occupancies.sparse(6), method="balanced", bounds=(0, 9), epsilon=2)
FRONTIER = PLAN.frontier(["balanced", "uniform", "user_clipped"], [1, 2, 4])


def test_a_frontier_is_drawn(tmp_path: Path) -> None:
    """Through the public name."""
    shoal.picture(FRONTIER, tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(
        InputError, match="an occupancy, a plan, a release, a comparison, a frontier"
    ):
        shoal.picture("frontier", tmp_path / "f.png")  # type: ignore[arg-type]


def test_lines_are_the_errors() -> None:
    """Worst cells left, median cells right, at the losses spent; the bound is dashed."""
    for axis, name in zip(draw(FRONTIER).axes, ("worst", "median"), strict=True):
        lines = {str(line.get_label()): line for line in axis.lines}
        for method in ("balanced", "uniform"):
            points = FRONTIER.of(method)
            line = lines[method]
            assert np.asarray(line.get_xdata()).tolist() == [each.plan.epsilon for each in points]
            drawn = np.asarray(line.get_ydata()).tolist()
            assert drawn == [getattr(each.figures, name) for each in points]
            assert line.get_linestyle() == "-"
        assert lines["user_clipped: only noise, not certified"].get_linestyle() == ":"
        [bound] = [line for line in axis.lines if line.get_linestyle() == "--"]
        assert np.asarray(bound.get_ydata()).tolist() == [
            getattr(each.figures, name) for each in FRONTIER.bounds
        ]
        said = {text.get_text() for text in axis.texts}
        assert {"balanced", "uniform", "lower bound, each cell alone"} <= said


def test_names_do_not_cover_each_other() -> None:
    """As drawn, with three methods at the same error."""
    same = PLAN.frontier(["baseline", "balanced", "equalised", "uniform"], [1, 2])
    figure = draw(same)
    figure.draw_without_rendering()
    for axis in figure.axes:
        names = [text for text in axis.texts if text.get_position()[0] > 1]
        assert len(names) == 5
        # Of the words alone, without the line to the curve.
        boxes = [Text.get_window_extent(text) for text in names]
        boxes.sort(key=lambda box: float(box.y0))
        assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=12), st.floats(0.001, 0.2))
def test_places_are_apart_and_in_order(wanted: list[float], apart: float) -> None:
    """Those far enough from all others stay where they are."""
    places = _spread(np.array(wanted), apart)
    ranked = places[np.argsort(wanted, kind="stable")]
    assert (np.diff(ranked) >= apart * (1 - 1e-9)).all()
    assert np.mean(places) == pytest.approx(np.mean(wanted), abs=1e-9)
    if (np.diff(np.sort(wanted)) > apart).all():
        assert places == pytest.approx(np.array(wanted))
