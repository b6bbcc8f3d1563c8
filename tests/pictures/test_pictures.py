"""Pictures of public facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import shoal
from shoal.errors import InputError
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


def test_bad_pictures_are_refused(tmp_path: Path) -> None:
    """Another subject, another ending, a place that is not there."""
    with pytest.raises(InputError, match="a subject of type int"):
        shoal.picture(3, tmp_path / "p.png")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"allowed: a name that ends in \.png"):
        shoal.picture(OCCUPANCY, tmp_path / "p.gif")
    with pytest.raises(InputError, match="cannot be written"):
        shoal.picture(OCCUPANCY, tmp_path / "no" / "p.png")
