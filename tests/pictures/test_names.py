"""Names in pictures: of anything, they are drawn as they are, and never as formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials
from shoal.errors import ShoalWarning
from shoal.pictures.names import drawn

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

# Two dollars make a formula of what is between them; that of the last can be read as one.
NAMES = ("$0_$9", "$$", "A$_$B", r"$\frac{$", r"a\$b$", "$5 to $10")


def _cells(method: str) -> tuple[shoal.Plan, shoal.Release]:
    cell = np.array(NAMES)[np.arange(600) % len(NAMES)].tolist()
    columns = [pa.array(np.arange(600)), pa.array(cell), pa.array(np.arange(600) % 9)]
    table = pa.table(columns, names=["u", "c", "v"])
    records = shoal.Records(table, user="u", cell="c", value="v", bounds=(0, 9))
    plan = shoal.plan(records.occupancy(), bounds=(0, 9), epsilon=5, method=method)
    return plan, plan.release(records, noise=shoal.Simulated(1))


def _trials() -> tuple[Any, ...]:
    arm, place = np.array(NAMES[:2])[np.arange(600) % 2], np.array(NAMES)[np.arange(600) // 2 % 6]
    space, bought = trials.Space.binary(), np.arange(600) % 3 % 2
    plan = trials.Questions(arm, place, control=NAMES[0]).effect().means().plan(space, 4)
    answers = plan.release(bought, arm, place, noise=shoal.Simulated(1))
    mechanism = trials.UniformPrior(epsilon=4)
    return plan, answers, mechanism.privatize(
        bought, arm, place, space=space, control=NAMES[0], noise=shoal.Simulated(1)
    )  # fmt: skip


def test_names_with_dollars_are_drawn_as_they_are(tmp_path: Path) -> None:
    """Of cells, arms, clusters and questions."""
    every = [_cells("balanced")[1], *_cells("user_clipped"), *_trials()]
    path = tmp_path / "p.svg"
    with mpl.rc_context({"svg.fonttype": "none"}):
        for subject in every:
            shoal.picture(subject, path, overwrite=True)
            assert "$0_$9" in path.read_text(encoding="utf-8")


def test_settings_of_matplotlib_do_not_decide_whether_there_is_a_picture(tmp_path: Path) -> None:
    """A release is charged by then, and LaTeX may not be there or take no such names."""
    release, path = _cells("balanced")[1], tmp_path / "p.svg"
    settings: Any = {"text.usetex": True, "text.parse_math": False, "svg.fonttype": "none"}
    with mpl.rc_context(settings):
        shoal.picture(release, path)
        assert bool(mpl.rcParams["text.usetex"])
    assert "$0_$9" in path.read_text(encoding="utf-8")


def test_letters_without_a_shape_are_told_of_in_one_line(tmp_path: Path) -> None:
    """By our own warning, that names no file."""
    occupancy = shoal.Occupancy.from_counts([1, 2, 3], ["\u65e5\u672c", "b", "b"], [1, 2, 3])
    plan = shoal.plan(occupancy, bounds=(0, 9), epsilon=50, method="user_clipped")
    with pytest.warns(ShoalWarning, match="drawn as boxes"):
        shoal.picture(plan, tmp_path / "p.png")


def test_a_cut_name_ends_no_formula() -> None:
    """What is cut off is cut off before dollars are told to be letters."""
    assert drawn("$" * 9, most=3) == r"\$\$\$"
    assert drawn("a\nb") == "a\\nb"
