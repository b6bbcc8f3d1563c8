"""CSV files: no record is lost, and no row decides how another is read."""

import csv
import gzip
import io
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials
from shoal.cells.estimates.draw import draw
from shoal.data import csv as reading
from shoal.data import sources
from shoal.data.csv import count_records
from shoal.data.sources import read_columns
from shoal.errors import DataError, ShoalError
from tests.support.tape import Tape, lost

MANY, CANARY = 200, "431987"
HEAD = "who,c,v,note"
FILES = 3000 if os.environ.get("SHOAL_FULL") else 60
# Notes of two rows, between which rows may be swallowed.
BROKEN = {
    "never closed": ('"late', "ok"),
    "closed by the next quoted cell": ('"late', '"so"'),
    "closed by a quote within a cell": ('"late', 'said "so"'),
    "ends in a quote alone": ("ok", 'late"'),
    "within a cell": ('5" disk', "ok"),
    "twice within a cell": ('a "big" disk', "ok"),
    "text behind": ('"ok"x', "ok"),
    "a blank before": (' "ok"', "ok"),
    "three and two": ('"""ok""', "ok"),
    "a backslash": ('"o\\"k"', "ok"),
}


def lines(first: str = "ok", second: str = "ok", at: int = 10) -> list[str]:
    """Rows with a secret value in one of them, and these notes."""
    notes = {at: first, at + 90: second}
    return [f"u{n},a,{CANARY if n == 50 else n % 8},{notes.get(n, 'ok')}" for n in range(MANY)]


def records(path: object, **wanted: Any) -> shoal.Records:
    """Values by place."""
    given = {"user": "who", "value": "v", "bounds": (0, 8), "by": "c", **wanted}
    return shoal.Records(path, **given, counts="public")


def refused(path: Path, message: str = " ") -> None:
    """The pass and whole columns refuse the file, in one line without a value."""
    for read in (
        records(path).aggregate,
        records(path, missing="public").counts,
        lambda: read_columns(path, private={"outcome": "note"}, public={"a": "c"}, texts=True),
    ):
        with pytest.raises(DataError, match=message) as caught:
            read()
        assert CANARY not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_quotes_that_do_not_enclose_cells_are_refused(tmp_path: Path, end: str) -> None:
    """In a column that nobody reads, with rows behind that would be swallowed."""
    for kind, notes in BROKEN.items():
        path = tmp_path / f"{kind}.csv"
        path.write_text(end.join([HEAD, *lines(*notes), ""]), newline="")
        refused(path)
    for last in ('"cut off in the midd', '"cut off\nand', '"', '"cut ""'):
        path.write_text(end.join([HEAD, *lines(), f"u,a,3,{last}"]) + end, newline="")
        refused(path)


def _file(draw: random.Random, *, sound: bool) -> str:
    """A file as a CSV writer writes it, or of any signs."""
    end = draw.choice(["\n", "\n", "\r\n"])
    if not sound:
        return f"a,b{end}" + "".join(draw.choices('x,,"\n7', k=draw.randint(1, 14)))
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=end)
    cells = ["".join(draw.choices('x,"\n 7', k=draw.randint(1, 5))) for _ in range(8)]
    rows = draw.randint(1, 4)
    writer.writerows([["a", "b"], *zip(cells[:rows], cells[4:], strict=False)])
    return out.getvalue()


def _python_reads(text: str) -> list[list[str]] | None:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))[1:]
    except csv.Error:
        return None
    # Empty cells behind the last column are left out, and empty lines.
    return [row[:2] if not any(row[2:]) else row for row in rows if row]


def test_hostile_files_are_read_as_python_reads_them_or_refused(tmp_path: Path) -> None:
    """Half of them sound: none of these is refused, and none of the others read otherwise."""
    draw, uses = random.Random(7), {"a": "label", "b": "label"}
    for turn in range(FILES):
        text = _file(draw, sound=turn % 2 == 1)
        path = tmp_path / "a.csv"
        path.write_text(text, newline="")
        try:
            with sources.opened(str(path), uses) as columns:
                found = columns.engine.run("SELECT * FROM records").to_pylist()
        except DataError:
            assert turn % 2 == 0, text
            continue
        read = [[row["c0"] or "", row["c1"] or ""] for row in found]
        assert read == _python_reads(text), text


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files as Python writes them, cut anywhere; empty lines are records of one column alone."""
    draw, path = random.Random(7), tmp_path / "a.csv"
    for _ in range(100):
        text = _file(draw, sound=True)
        path.write_text("\ufeff" + text, encoding="utf-8", newline="")
        rows = len(_python_reads(text) or ())
        for size in (3, 7, 2**20):
            monkeypatch.setattr(reading, "_BLOCK", size)
            assert count_records(str(path), columns=2) == rows, text
    for text, columns in (("v\n1\n\n2", 1), ("v,w\n1,\n\n\n2,", 2), ("v,w\r\n\r\n1,\r\n2,", 2)):
        path.write_text(text, newline="")
        found = read_columns(path, private={"outcome": "v"}, public={}).column("v").to_pylist()
        assert found == ([1.0, None, 2.0] if columns == 1 else [1.0, 2.0])


def test_rows_that_the_engine_leaves_out_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an engine may do, it reads as many rows as the file has records."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join([HEAD, *lines()]))
    monkeypatch.setattr(reading, "count_records", lambda *_, **__: MANY + 1)
    refused(path, "the CSV file is malformed")


def test_quoted_lines_that_look_like_rows_are_none(tmp_path: Path) -> None:
    """A file that an engine would read in parts is read as one."""
    path, rows = tmp_path / "long.csv", 9000
    inner = "".join(f"\nf{at},c,{at},x" for at in range(300))
    with path.open("w", newline="") as file:
        file.write("user,value,comment\n")
        file.writelines(f'u{at},{at % 700}.25,"{inner * (at % 3 > 0)}"\n' for at in range(rows))
    assert path.stat().st_size > 2**23
    found = read_columns(path, private={"value": "value"}, public={"user": "user"})
    assert found.column("user").to_pylist() == [f"u{at}" for at in range(rows)]


def test_one_value_moves_its_own_record_alone(tmp_path: Path) -> None:
    """A fraction before or behind more whole numbers than engines guess types from."""
    path, tapes = tmp_path / "n.csv", []
    for value in ("1", "0.5"):
        others = [f"u{at},x,{1 if at < 21_000 else 0.5}\n" for at in range(23_000)]
        path.write_text("".join(["who,c,v\n", f"ann,x,{value}\n", *others]))
        plan = shoal.plan(
            records(path, bounds=(0, 1)).counts(), method="balanced", bounds=(0, 1), epsilon=1
        )
        tapes.append(Tape())
        draw(plan, records(path, bounds=(0, 1)).aggregate()[1], tapes[-1])
    assert lost(*tapes)[0] <= float(plan.exact_epsilon)


def test_private_cells_are_read_one_by_one(tmp_path: Path) -> None:
    """Numbers for numbers, truths as 1 and 0, nothing for nothing; labels stay texts."""
    cells = ["1", "0.5", "true", "", "1e3", "FALSE", " 7 ", "inf", " "]
    for order in (cells, cells[::-1]):
        path = tmp_path / "c.csv"
        path.write_text("who,v\n" + "".join(f"p,{each}\n" for each in order))
        column = read_columns(path, private={"outcome": "v"}, public={"unit": "who"}).column("v")
        numbers = [1.0, 0.5, 1.0, None, 1e3, 0.0, 7.0, float("inf"), None]
        assert column.to_pylist() == (numbers if order is cells else numbers[::-1])
    path.write_text('v\n1\n"1.0"\noften\n')
    texts = read_columns(path, private={"outcome": "v"}, public={}, texts=True).column("v")
    assert texts.to_pylist() == ["1", "1.0", "often"]
    domain = trials.Domain.ordinal(["1", "1.0", "often"])
    assert domain.numbers(texts).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("missing", ["refuse", "public"])
def test_texts_are_no_numbers_wherever_they_are(tmp_path: Path, missing: str) -> None:
    """Refused in the first row and in the last."""
    for bad in (f"fast {CANARY}", "NA", "1,5", "0x10", "1_0", "1e1_0", "+-5", "nan(1)", "+-inf"):
        for rows in ([f'bob,a,"{bad}",', *lines()], [*lines(), f'bob,a,"{bad}",']):
            path = tmp_path / "t.csv"
            path.write_text("\n".join([HEAD, *rows]))
            with pytest.raises(DataError, match="'v' holds text; give a number") as caught:
                records(path, missing=missing).aggregate()
            assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["0", "-7", "123456789012345678"], pa.int64()),
        (["0", "007"], pa.string()),
        (["0", "-0"], pa.string()),
        (["1", "1.0", "1e+00"], pa.int64()),
        (["100001", "1e+05", "1.5e+05"], pa.int64()),
        (["1.0", "1.5e+00"], pa.float64()),
        (["1", "1234567890123456789"], pa.string()),
        (["1", " 2"], pa.string()),
        (["true", "False"], pa.bool_()),
        (["true", "1"], pa.string()),
        (["2013-01-01", "1969-12-31"], pa.date32()),
        (["2013-01-01", "2013-02-30"], pa.string()),
        (["2013-01-01", "2013-1-2"], pa.string()),
    ],
)
def test_a_key_has_the_type_that_every_cell_has(
    tmp_path: Path, cells: list[str], kind: pa.DataType
) -> None:
    """Whole numbers, truths and dates in their one form, else texts, in any order."""
    for order in (cells, cells[::-1]):
        path = tmp_path / "k.csv"
        path.write_text("k,v\n" + "".join(f"{each},1\n" for each in [*order, ""]))
        column = read_columns(path, private={"value": "v"}, public={"user": "k"}).column("k")
        assert column.type == kind
        if kind == pa.int64():
            assert column.to_pylist() == [*(int(Decimal(each)) for each in order), None]
        if kind == pa.string():
            assert column.to_pylist() == [*order, None]


def test_times_are_read_one_by_one(tmp_path: Path) -> None:
    """With a zone or without it, and never both; seconds or not: hours in UTC, or refused."""
    naive = {"2013-01-01 00:00": 0, "2013-01-01 05:00": 5, "1969-12-31T23:59:59.999999": 23}
    zoned = {
        "2013-01-01T05:00:00Z": 5,
        "2013-01-01 05:00:00 UTC": 5,
        "2013-01-01 05:00:00.123456789+02:00": 3,
        "2013-01-01T05:00:00-0530": 10,
        "2013-01-01 05:00:00 -0430": 9,
        "1969-12-31 23:59:59.999999+00": 23,
    }
    path = tmp_path / "t.csv"
    for times, reverse in ((naive, False), (naive, True), (zoned, False), (zoned, True)):
        order = sorted(times, reverse=reverse)
        path.write_text("who,c,v\n" + "".join(f"{at},{at},1\n" for at in order))
        found = records(path, by="hour_of_day(c)").counts()
        assert found.cells.column(0).to_pylist() == sorted(set(times.values()))
        for bad in (
            *("01/02/2013", "5:00", "2013-02-30", "2013-01-01 05:00:00 Europe/Paris"),
            *(f"2013-01-01 05:00:00{zone}" for zone in ("+99:99", "+24", "-23:60", " +0199")),
        ):
            path.write_text("who,c,v\n" + "".join(f"{at},{at},1\n" for at in (*order, bad)))
            with pytest.raises(DataError, match="'c' holds text; give a date or time"):
                records(path, by="hour_of_day(c)").counts()
    path.write_text("who,c,v\na,2013-01-01 05:00,1\nb,2013-01-01 05:00Z,2\n")
    with pytest.raises(DataError, match="'c' holds times with a zone in some rows"):
        records(path, by="hour_of_day(c)").counts()
    path.write_text("who,c,v\na,2013-01-01,1\nb,2013-01-02,2\n")
    assert records(path, by=["c", "timeslot(c,1d)"]).counts().n_cells == 2


def test_without_a_line_of_names_no_record_is_told(tmp_path: Path) -> None:
    """The first record is no list of columns; nor is a header of another kind."""
    path = tmp_path / "h.csv"
    texts = (b"ann,x,431.5\nbob,x,77\n", b'"431.5";b;c\n', b"431.5\n", b"placed\n", b"")
    for raw in (*texts, b'"431.5', b"431.5\xff\n", b"431.5," * 2**18, "431.5\n".encode("utf-16")):
        path.write_bytes(raw)
        with pytest.raises(ShoalError, match=r"first line (names|of)") as caught:
            records(path, by="place").counts()
        assert "431" not in str(caught.value)
        assert "did you mean" not in str(caught.value)
    path.write_bytes(b"who;c;v\n")
    with pytest.raises(DataError, match="seems to be separated by semicolons"):
        records(path).counts()


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    """Under a name that is no plain word, with a mark at the start, with ends of two signs."""
    rng = np.random.default_rng(4)
    values = rng.normal(0, 1, 5000) * 10.0 ** rng.integers(-300, 300, 5000)
    text = 'V,"an, ""odd"" name"\n' + "".join(f"1,{each!r}\n" for each in values.tolist())
    for raw in (text, "\ufeff" + text, text.replace("\n", "\r\n")):
        (tmp_path / "a.csv").write_text(raw, encoding="utf-8", newline="")
        name = 'an, "odd" name'
        found = read_columns(tmp_path / "a.csv", private={"value": name}, public={})
        assert found.column(name).to_pylist() == values.tolist()


def packed(text: str, ending: str) -> bytes:
    """The same, compressed as its ending says."""
    if ending == ".csv.gz":
        return gzip.compress(text.encode())
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text.encode())
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("ending", [".csv.gz", ".CSV.ZST"])
def test_a_compressed_file_is_read_whole_or_refused(tmp_path: Path, ending: str) -> None:
    """The same sums; cut off, with something behind, or not compressed at all is refused."""
    text = "\n".join([HEAD, *lines('"a\n""b"""'), ""])
    (tmp_path / "a.csv").write_text(text, newline="")
    path, whole = tmp_path / f"a{ending}", packed(text, ending)
    half = len(text) // 2
    for raw in (whole, packed(text[:half], ending) + packed(text[half:], ending)):
        path.write_bytes(raw)
        _, found = records(path).aggregate()
        assert found.cell_sums() == records(tmp_path / "a.csv").aggregate()[1].cell_sums()
    for raw in (
        *(whole[:-size] for size in (1, 9, len(whole) // 2)),
        whole + b"u,a",
        text.encode(),
    ):
        path.write_bytes(raw)
        refused(path)
    path.write_bytes(packed(text + 'u1,a,3,"late', ending))
    refused(path, "malformed|could not read")
