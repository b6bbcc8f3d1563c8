"""Record and replay: neighbours with the same frozen noise look the same from outside."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shoal.mechanisms import noise
from shoal.release import release as release_room
from tests.support import flights

if TYPE_CHECKING:
    from types import FrameType

SOURCE = str(Path(release_room.__file__).parents[1])


@dataclass
class Tape:
    """Stands for the operating system's noise: records what it is asked, adds fixed numbers."""

    simulated: bool = False
    asked: list[tuple[list[int], int]] = field(default_factory=list)

    def add_laplace(self, steps: list[int], lattice_bits: int) -> list[int]:
        """Freeze the noise."""
        self.asked.append((steps, lattice_bits))
        return [x + 3 * at for at, x in enumerate(steps)]

    add_gaussian = add_laplace


@dataclass
class Run:
    """Everything of a release that leaves the mechanism."""

    lines: list[tuple[str, int]]
    tape: Tape
    release: object
    spent: object
    table: object
    output: str


def run(
    table: object,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Release the table with frozen noise, recording every line of shoal that runs."""
    tape = Tape()
    monkeypatch.setattr(noise, "OperatingSystem", lambda: tape)
    folder.mkdir()
    book, plan, records = flights.ledger(folder), flights.plan(table), flights.records(table)
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:  # noqa: ANN401
        name = frame.f_code.co_filename
        if not name.startswith(SOURCE):
            return None
        if event == "line":
            lines.append((name, frame.f_lineno))
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        done = plan.release(records, ledger=book)
    finally:
        sys.settrace(old)
    return Run(lines, tape, done, book.spent, done.table(), "".join(capsys.readouterr()))


@pytest.mark.parametrize("value", [-1e9, 0.0, 350.0, 700.0, 1e9])
def test_neighbours_differ_only_inside_the_mechanism(
    value: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """G-REPLAY: same lines of code, draws, cost, schema, output; statistics within sensitivity."""
    table = flights.table()
    plan = flights.plan(table)
    one = run(table, tmp_path / "one", monkeypatch, capsys)
    other = run(flights.neighbour(table, "N007", value), tmp_path / "other", monkeypatch, capsys)
    assert one.lines == other.lines
    assert one.spent == other.spent
    assert one.output == other.output == ""
    assert one.table.schema == other.table.schema  # type: ignore[attr-defined]
    assert one.table.num_rows == other.table.num_rows  # type: ignore[attr-defined]
    assert len(one.tape.asked) == len(other.tape.asked) == 1
    (before, bits), (after, other_bits) = one.tape.asked[0], other.tape.asked[0]
    assert bits == other_bits
    assert len(before) == len(after)
    moved = sum(abs(x - y) for x, y in zip(before, after, strict=True))
    assert 0 < moved <= plan.user_losses.max() * 2**bits


def test_the_noise_of_a_release_is_the_operating_systems() -> None:
    """The default source is OpenDP's, and is not a simulation."""
    assert isinstance(noise.source_of(None), noise.OperatingSystem)
    assert not noise.source_of(None).simulated
