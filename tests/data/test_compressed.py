"""Compressed CSV files: what is in them is read as it is without, whole, or refused."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import shoal
from shoal.data import csv_file
from shoal.data.csv_records import count_records
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError, DocumentError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.audit

CANARY = "431987"
ROWS = [f'u{n % 9},p{n % 3},{CANARY if n == 50 else n % 8},"a\n""b"""' for n in range(200)]
TEXT = "\n".join(["who,place,v,note", *ROWS, ""])
ENDINGS = [".csv.gz", ".csv.zst"]


def packed(text: str | bytes, ending: str) -> bytes:
    """The same, compressed as its ending says."""
    raw = text if isinstance(text, bytes) else text.encode()
    if ending == ".csv.gz":
        return gzip.compress(raw)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(raw)
    return sink.getvalue().to_pybytes()


def records(path: Path | str) -> shoal.Records:
    """Values by place."""
    return shoal.Records(path, user="who", value="v", bounds=(0, 8), cell="place")


def refused(path: Path, message: str) -> None:
    """Both ways to read refuse it, in one line that holds no value."""
    for read in (
        records(path).occupancy,
        lambda: read_columns(path, private={"outcome": "v"}, public={"arm": "place"}),
    ):
        with pytest.raises(DataError, match=message) as caught:
            read()
        assert CANARY not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_compressed_file_is_the_file(tmp_path: Path, ending: str) -> None:
    """The same counts and sums; marks, line ends and several parts as in plain files."""
    (tmp_path / "a.csv").write_text(TEXT)
    plain = records(tmp_path / "a.csv").aggregate()
    half = len(TEXT) // 2
    for name, raw in (
        ("a", packed(TEXT, ending)),
        ("mark", packed("\ufeff" + TEXT, ending)),
        ("ends", packed(TEXT.replace("\n", "\r\n"), ending)),
        ("parts", b"".join(packed(each, ending) for each in (TEXT[:half], "", TEXT[half:]))),
    ):
        path = tmp_path / (name + (ending.upper() if name == "mark" else ending))
        path.write_bytes(raw)
        for given in (path, str(path)):
            found = records(given).aggregate()
            assert found.occupancy.fingerprint == plain.occupancy.fingerprint, name
            assert found.cell_sums() == plain.cell_sums()


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_not_whole_is_refused(tmp_path: Path, ending: str) -> None:
    """Cut off, with something behind, damaged, or not compressed at all."""
    path, whole = tmp_path / f"a{ending}", packed(TEXT, ending)
    # Engines do not look at the check sum of gzip, here that of a single digit.
    damaged = packed(TEXT.replace(",7,", ",6,"), ".csv.gz")[:-8] + packed(TEXT, ".csv.gz")[-8:]
    for raw in (
        *(whole[:-size] for size in (1, 9, len(whole) // 2)),
        *([damaged] if ending == ".csv.gz" else []),
        whole + b"who,place",
        TEXT.encode(),
    ):
        path.write_bytes(raw)
        refused(path, "which is damaged or not compressed as its name says")


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_checks_of_plain_files_hold(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No names, quotes that are never closed or misplaced, a record that is left out."""
    path = tmp_path / f"a{ending}"
    for text, message in (
        ("", "no columns in the first line"),
        (TEXT.replace('"a', 'a"'), "malformed"),
        (TEXT + 'u1,p1,3,"late', "malformed"),
        (TEXT + 'u1,p1,3,5" disk', "malformed"),
        (TEXT + f"u1,p1,fast {CANARY},x\n", "'v' holds string"),
        (TEXT.replace("who,place", "whom,palace", 1), "no column"),
    ):
        path.write_bytes(packed(text, ending))
        refused(path, message)
    path.write_bytes(packed(TEXT, ending))
    monkeypatch.setattr(csv_file, "count_records", lambda *_, **__: len(ROWS) + 1)
    refused(path, "malformed")


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_output_replaces_a_compressed_file(tmp_path: Path, ending: str) -> None:
    """Neither the records themselves, nor another one that shoal did not make."""
    path, other = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    for each in (path, other):
        each.write_bytes(packed(TEXT, ending))
    before = path.read_bytes()
    occupancy = records(path).occupancy()
    for target in (path, other):
        with pytest.raises(DocumentError, match=r"never replaced|what is read as records"):
            occupancy.save(target, overwrite=True)
        assert target.read_bytes() == before


def test_a_compressed_file_that_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the count of its records and the pass."""
    path = tmp_path / "a.csv.gz"
    path.write_bytes(packed(TEXT, ".csv.gz"))

    def late(*given: object, **named: object) -> int:
        found = count_records(*given, **named)  # type: ignore[arg-type]
        path.write_bytes(packed(TEXT + "u1,p1,3,x\n", ".csv.gz"))
        return found + 1

    monkeypatch.setattr(csv_file, "count_records", late)
    with pytest.raises(DataError, match="changed while it was read"):
        records(path).occupancy()
