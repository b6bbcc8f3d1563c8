"""Pictures of public facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import shoal
from shoal.cells.typical_error import SPREAD
from shoal.errors import InputError
from shoal.pictures import pictures
from tests.support import occupancies

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

OCCUPANCY = occupancies.sparse(6)


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_occupancies_and_plans_are_drawn(tmp_path: Path, ending: str, start: bytes) -> None:
    """The ending chooses the format."""
    plan = shoal.plan(OCCUPANCY, method="balanced", bounds=(0, 9), epsilon=5)
    for subject in (OCCUPANCY, plan):
        shoal.picture(subject, tmp_path / f"p.{ending}", overwrite=True)
        assert (tmp_path / f"p.{ending}").read_bytes().startswith(start)


def test_a_default_plan_shows_the_errors_to_expect() -> None:
    """Its typical errors in the value's unit, best first, named if there is room."""
    plan = shoal.plan(OCCUPANCY, bounds=(0, 9), epsilon=5)
    assert not plan.certified
    [axis] = pictures._plan(plan).axes
    drawn = np.asarray(axis.lines[0].get_ydata())
    assert np.allclose(drawn, np.sort(plan.typical_error(9 * SPREAD)))
    names = {each.get_text() for each in axis.get_xticklabels()}
    assert names <= set(plan.occupancy.labels)
    assert (len(names) == len(drawn)) == (len(drawn) <= 40)


def test_bad_pictures_are_refused(tmp_path: Path) -> None:
    """Another subject, another ending, a place that is not there."""
    with pytest.raises(InputError, match="a subject of type int"):
        shoal.picture(3, tmp_path / "p.png")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"allowed: a name that ends in \.png"):
        shoal.picture(OCCUPANCY, tmp_path / "p.gif")
    with pytest.raises(InputError, match="cannot be written"):
        shoal.picture(OCCUPANCY, tmp_path / "no" / "p.png")
