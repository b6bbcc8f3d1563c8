"""Work in another process: what it yields, and how it fails."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from shoal_studies.apart import apart, peak

from shoal.cli.main import main
from shoal.errors import InputError

pytestmark = pytest.mark.study


def _count(most: int) -> Iterator[int]:
    yield from range(most)


def _fail(kind: type[Exception]) -> Iterator[int]:
    yield 1
    raise kind(*("got", "allowed", "next") if kind is InputError else ("text",))


def _die() -> Iterator[int]:
    yield peak() > 0
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_another_process_yields_comes_as_it_is() -> None:
    """In order, and all of it."""
    assert list(apart(_count, 4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [InputError, MemoryError, ValueError])
def test_an_error_there_is_one_of_ours_here(kind: type[Exception]) -> None:
    """After what came before it."""
    found = apart(_fail, kind)
    assert next(found) == 1
    with pytest.raises(InputError, match=r"got|sizes that end in"):
        next(found)


def test_a_process_that_is_killed_is_missed() -> None:
    """No waiting without end, no traceback."""
    found = apart(_die)
    assert next(found)
    with pytest.raises(InputError, match="ended before its work did"):
        next(found)


@pytest.mark.full
def test_generated_records_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a folder that is made, and used again."""
    sizes = ("--rows", "1000", "--users", "50", "--cells", "5", "--cells-per-user", "3")
    assert main(["bench", "aggregate", *sizes, "--folder", str(tmp_path / "made")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1,000 records, 50 users, 5 cells")
    assert lines[-1] == "medians of 3 turns, each in a new process"
    assert len(list((tmp_path / "made").iterdir())) == 2
