"""Record and replay: neighbours with the same frozen noise look the same from outside."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal.cells import release as release_room
from shoal.documents.json_schema import validator
from shoal.privacy import noise
from shoal.privacy.privacy_unit import PrivacyUnit
from tests.support import flights, methods
from tests.support.tape import Tape, lost, waits

if TYPE_CHECKING:
    from types import FrameType

    import pyarrow as pa

pytestmark = pytest.mark.audit

SOURCE = str(Path(release_room.__file__).parents[1])


@dataclass
class Run:
    """Everything of a release that leaves the mechanism."""

    lines: list[tuple[str, int]]
    tape: Tape
    release: shoal.Release
    spent: object
    table: pa.Table
    output: str


def run(
    made: shoal.Plan,
    records: shoal.Records,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    like: Run | None = None,
) -> Run:
    """Release records with frozen noise, or another run's, recording every line that runs."""
    tape = Tape(answers=[] if like is None else like.tape.given)
    monkeypatch.setattr(noise, "OperatingSystem", lambda: tape)
    folder.mkdir()
    # A plan of its own: what one release computes and keeps must not serve the next.
    made.save(folder / "plan.json")
    made = shoal.Plan.load(folder / "plan.json")
    book = shoal.Ledger.create(folder / "book.ledger", epsilon=10, delta="1/100")
    # The text of a unit and schemas are public and kept by the process: the first release makes
    # them, no other.
    PrivacyUnit(records.user).to_text()
    for schema in files("shoal").joinpath("documents", "schemas").iterdir():
        validator(schema.name.removesuffix(".json"))
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:  # noqa: ANN401
        name = frame.f_code.co_filename
        if not name.startswith(SOURCE) or waits(frame.f_code):
            return None
        if event == "line":
            lines.append((name, frame.f_lineno))
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        done = made.release(records, ledger=book)
    finally:
        sys.settrace(old)
    return Run(lines, tape, done, book.spent, done.table(), "".join(capsys.readouterr()))


def check(made: shoal.Plan, one: Run, other: Run) -> None:
    """Nothing but numbers that reach the noise tells two releases apart, and these as accounted."""
    assert one.lines == other.lines
    assert one.spent == other.spent
    assert one.output == other.output == ""
    assert one.table.schema == other.table.schema
    assert one.table.num_rows == other.table.num_rows
    assert 0 < max(lost(one.tape, other.tape)) <= made.user_losses.max()


@pytest.mark.parametrize("value", [-1e9, 0.0, 350.0, 700.0, 1e9])
def test_neighbours_differ_only_inside_the_mechanism(
    value: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """G-REPLAY: same lines of code, draws, cost, schema, output; statistics within sensitivity."""
    table = flights.table()
    made = flights.plan(table)
    pair = table, flights.neighbour(table, "N007", value)
    one, other = (
        run(made, flights.records(each), tmp_path / str(at), monkeypatch, capsys)
        for at, each in enumerate(pair)
    )
    check(made, one, other)


@pytest.mark.parametrize("name", methods.METHODS)
def test_neighbours_in_any_order_differ_only_inside_every_mechanism(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """G-REPLAY: every method; rows sorted by value in both files, then shuffled in the other."""
    table = methods.tied(seed=5)
    made = methods.plan(table, methods.METHODS[name])
    lowest = table.sort_by("value").column("who")[0].as_py()
    changed = methods.orders(methods.neighbour(table, lowest, 100.0))
    rows = methods.orders(table)["by value"], changed["by value"], changed["shuffled"]
    one = run(made, methods.records(rows[0]), tmp_path / "0", monkeypatch, capsys)
    two, three = (
        run(made, methods.records(each), tmp_path / str(at), monkeypatch, capsys, one)
        for at, each in enumerate(rows[1:], 1)
    )
    check(made, one, two)
    check(made, one, three)
    assert two.tape.asked == three.tape.asked


def test_the_noise_of_a_release_is_the_operating_systems() -> None:
    """The default source is OpenDP's, and is not a simulation."""
    assert isinstance(noise.source_of(None), noise.OperatingSystem)
    assert not noise.source_of(None).simulated
