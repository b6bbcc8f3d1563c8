"""No record of a CSV file is lost, whatever its cells hold."""

from __future__ import annotations

import csv
import io
import random
from typing import TYPE_CHECKING

import pytest

import shoal
from shoal.data import csv_bytes, csv_file
from shoal.data.csv_records import count_records
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.audit

MANY = 200
HEAD = "who,c,v,note"
CANARY = "431987"

# Notes of two rows, between which rows may be swallowed.
BROKEN = {
    "never closed": ('"late', "ok"),
    "closed by the next quoted cell": ('"late', '"so"'),
    "closed by a quote within a cell": ('"late', 'said "so"'),
    "two never closed": ('"late', '"later'),
    "ends in a quote alone": ("ok", 'late"'),
    "within a cell": ('5" disk', "ok"),
    "twice within a cell": ('a "big" disk', "ok"),
    "text behind": ('"ok"x', "ok"),
    "a blank behind": ('"ok" ', "ok"),
    "a blank before": (' "ok"', "ok"),
    "three and two": ('"""ok""', "ok"),
    "a backslash": ('"o\\"k"', "ok"),
}


def lines(first: str = "ok", second: str = "ok", at: int = 10) -> list[str]:
    """Rows with a secret value in one of them, and these notes."""
    notes = {at: first, at + 90: second}
    return [f"u{n},a,{CANARY if n == 50 else n % 8},{notes.get(n, 'ok')}" for n in range(MANY)]


def counted(path: Path, missing: str = "refuse") -> int:
    """Records that the pass counts."""
    given = {"user": "who", "value": "v", "cell": "c", "missing": missing}
    return int(shoal.Records(path, bounds=(0, 8), **given).occupancy().count.sum())  # type: ignore[arg-type]


def refused(path: Path, missing: str = "refuse") -> None:
    """The pass and whole columns refuse the file, in one line without a value."""
    public = {"arm": "c"}
    for read in (
        lambda: counted(path, missing),
        lambda: read_columns(path, private={"outcome": "v"}, public=public),
        lambda: read_columns(path, private={"outcome": "note"}, public=public, texts=True),
        lambda: read_columns(path, private={}, public=public),
    ):
        with pytest.raises(DataError, match="is malformed; allowed: double quotes") as caught:
            read()
        assert CANARY not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("missing", ["refuse", "public"])
@pytest.mark.parametrize("kind", BROKEN)
def test_quotes_that_do_not_pair_are_refused(
    tmp_path: Path, kind: str, missing: str, end: str
) -> None:
    """In a column that nobody reads, with rows behind that would be swallowed."""
    path = tmp_path / "a.csv"
    path.write_text(end.join([HEAD, *lines(*BROKEN[kind]), ""]), newline="")
    refused(path, missing)


@pytest.mark.parametrize("last", ['"cut off in the midd', '"cut off\nand', '"', '"cut ""'])
def test_a_file_that_is_cut_within_quotes_is_refused(tmp_path: Path, last: str) -> None:
    """The last row is not left out."""
    for end in ("", "\n", "\r\n"):
        path = tmp_path / "a.csv"
        path.write_text("\n".join([HEAD, *lines(), f"u,a,3,{last}"]) + end, newline="")
        refused(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    "note", ['"two\nlines"', '"a ""big"" disk"', '"""so"""', '""', '"a, b"', '"x\r\ny"', "", '","']
)
def test_quoted_cells_are_read(tmp_path: Path, note: str, end: str) -> None:
    """Lines, commas and doubled quotes in a cell, with and without an end of the file."""
    path = tmp_path / "a.csv"
    for last in ("", end, end * 3):
        path.write_text(end.join([HEAD, *lines(note, note)]) + last, newline="")
        assert counted(path) == MANY


def test_empty_lines_are_records_of_one_column(tmp_path: Path) -> None:
    """Of several columns they are none; a last line needs no end."""
    path = tmp_path / "a.csv"
    for text, columns in (("v\n1\n\n2", 1), ("v,w\n1,\n\n\n2,", 2), ("v,w\r\n\r\n1,\r\n\r\n2,", 2)):
        path.write_text(text, newline="")
        found = read_columns(path, private={"outcome": "v"}, public={}).column("v").to_pylist()
        assert found == ([1.0, None, 2.0] if columns == 1 else [1.0, 2.0])
        assert count_records(path, columns=columns) == len(found)


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand files as Python writes and strictly reads them, cut anywhere."""
    draw = random.Random(7)
    path = tmp_path / "a.csv"
    for turn in range(1000):
        rows = [["".join(draw.choices('a,"\n\r', k=draw.randrange(4))) for _ in "ab"] for _ in "ab"]
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=draw.choice(["\n", "\r\n"]))
        writer.writerows([["who", "note"], *rows])
        whole = text.getvalue() if turn % 2 else "\ufeff" + text.getvalue()
        path.write_text(whole, encoding="utf-8", newline="")
        for size in (1, 2, 7, 2**20):
            monkeypatch.setattr(csv_bytes, "_BLOCK", size)
            assert count_records(path, columns=2) == 2, rows
        path.write_text(whole[: whole.rindex('"')], encoding="utf-8", newline="")
        with pytest.raises(DataError, match="malformed"):
            count_records(path, columns=2)


def test_rows_that_the_engine_leaves_out_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an engine may do, it reads as many rows as the file has records."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join([HEAD, *lines()]))
    monkeypatch.setattr(csv_file, "count_records", lambda *_, **__: MANY + 1)
    refused(path)
