"""Which files a path stands for: all that a person would expect, or one that is named."""

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import DataError, ShoalWarning

TABLE = pa.table({"who": ["a", "b", "b"], "zone": ["n", "n", "s"], "v": [1.0, 2.0, 3.0]})
LINES = "who,zone,v\na,n,1\nb,n,2\nb,s,3\n"


def counts(source: object) -> shoal.Counts:
    """Records by zone."""
    given = {"user": "who", "value": "v", "bounds": (0, 4), "by": "zone"}
    return shoal.Records(source, **given, counts="public").counts()  # type: ignore[arg-type]


def said(source: object) -> str:
    """The one line that is said of a source."""
    with pytest.raises(DataError) as caught:
        counts(source)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of months, in the working folder, with notes of Spark."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "months" / "2024"
    place.mkdir(parents=True)
    for month in (1, 2):
        pq.write_table(TABLE.replace_schema_metadata({"m": str(month)}), place / f"{month}.parquet")
    (place / "_SUCCESS").touch()
    (place / ".1.parquet.crc").touch()
    (place / "_temporary").mkdir()
    (place / "_temporary" / "1.parquet").touch()
    return place.parent


@pytest.mark.parametrize("name", ["3.parq", "part-00000", "3.csv", "3.json", "2025/3.feather"])
def test_a_file_of_a_folder_that_is_not_read_is_named(folder: Path, name: str) -> None:
    """Deep in it, too; notes are none."""
    assert counts(folder).totals.tolist() == [4, 2]
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(LINES)
    for source in (folder, "months", f"{folder}/**", f"{folder}/*"):
        assert f"'months/{name}'" in said(source)


def test_links_lose_no_record_and_count_none_twice(folder: Path, tmp_path: Path) -> None:
    """Links to files are files; to folders, to nothing, and to files beside them are refused."""
    pq.write_table(TABLE, tmp_path / "more.parquet")
    (folder / "more.parquet").symlink_to(tmp_path / "more.parquet")
    (tmp_path / "link").symlink_to(folder)
    assert counts(tmp_path / "link").totals.tolist() == [6, 3]
    (folder / "again.parquet").symlink_to(folder / "2024" / "1.parquet")
    assert "are one file, which would count twice" in said(folder)
    (folder / "again.parquet").unlink()
    (folder / "broken.parquet").symlink_to(tmp_path / "gone")
    assert "'months/broken.parquet' is a link to a file that is not there" in said(folder)
    assert "is a link to a file that is not there" in said("months/broken.parquet")
    (folder / "broken.parquet").unlink()
    (folder / "2023").symlink_to(folder / "2024")
    assert "'months/2023' is a link to a folder" in said(folder)


def test_folders_of_one_kind_are_read_whole(tmp_path: Path) -> None:
    """Of CSV files, too; a pattern may name folders; logs of lakes decide what counts."""
    for name in ("a", "b"):
        place = tmp_path / f"{name}.csv"
        place.mkdir()
        (place / "part-0.csv").write_text(LINES.replace("a,", f"{name},"))
    for source in (tmp_path, f"{tmp_path}/*.csv", f"{tmp_path}/**/*.csv"):
        assert counts(source).totals.tolist() == [4, 2]
    (tmp_path / "a.csv" / "_delta_log").mkdir()
    assert "is a table of Delta Lake" in said(tmp_path)


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("t.tsv", LINES.encode(), "no Parquet or CSV file by its name; write it as Parquet, or as"),
        ("t.xlsx", b"PK\3\4", "no Parquet or CSV file by its name; save it as CSV UTF-8"),
        ("t.csv", b"PK\3\4", "is a workbook or a zip archive by its first bytes"),
        (
            "t.csv",
            gzip.compress(LINES.encode(), mtime=0),
            "is compressed by gzip by its first bytes",
        ),
        ("t.csv.gz", LINES.encode(), "is no file compressed by gzip, or it is damaged"),
        ("t.csv", LINES.replace("n,2", "Köln,2").encode("latin1"), "is not in UTF-8; convert it"),
        ("t.csv", LINES.encode("utf-16"), "perhaps in UTF-16; convert it: iconv -f utf-16"),
        ("t.csv", LINES.replace("n,2", "n").encode(), "lines with fewer fields than names"),
        ("t.csv", LINES.replace("n,2", "n,2,5").encode(), "with more fields than names in its fir"),
        ("t.csv", LINES.replace("2\n", "2\r\n").encode(), "has lines that end in different ways"),
        ("t.csv", LINES.replace("\n", "\r").encode(), "end in different ways, or in CR alone"),
        ("t.csv", LINES.replace(",", "|").encode(), "seems to be separated by bars: write it with"),
    ],
)
def test_a_file_is_refused_by_its_true_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, raw: bytes, message: str
) -> None:
    """By its name, and beside a good one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(raw)
    found = said(name)
    assert message in found
    assert repr(name) in found


def test_a_copy_of_a_file_is_asked_about(folder: Path) -> None:
    """Of the browser's, for example; other files of the same size are none."""
    (folder / "1 (1).parquet").write_bytes((folder / "2024" / "1.parquet").read_bytes())
    with pytest.warns(ShoalWarning, match=r"1.parquet' and 'months/1 \(1\).parquet' hold the same"):
        assert counts(folder).totals.tolist() == [6, 3]


def test_the_file_and_the_column_that_differ_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several files; one that is none; and what stands in the way of reading."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "a.parquet")
    pq.write_table(TABLE.drop_columns(["zone"]), "b.parquet")
    assert "there is no column 'zone' in 'b.parquet'" in said("*.parquet")
    pq.write_table(TABLE.set_column(1, "zone", pa.array([1, 2, 3])), "b.parquet")
    assert "'zone' is bigint in 'b.parquet' and varchar in 'a.parquet'" in said("*.parquet")
    Path("b.parquet").write_bytes(Path("a.parquet").read_bytes()[:-9])
    assert "'b.parquet' is no Parquet file, or it is damaged or cut off" in said("*.parquet")


def test_places_that_are_no_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home folder is found; other machines, pipes and devices are named."""
    monkeypatch.setenv("HOME", str(tmp_path))
    pq.write_table(TABLE, tmp_path / "t.parquet")
    assert counts("~/t.parquet").totals.tolist() == [2, 1]
    for place in ("s3://bucket/t.parquet", Path("https://example.org/t.csv"), "gs://b/*.parquet"):
        assert "is not on this machine, and shoal reads local files only" in said(place)
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is a pipe or a device; give a file" in said(tmp_path / "pipe.csv")


def test_a_column_of_the_file_means_itself(tmp_path: Path) -> None:
    """Written like a call of no rule it is a column; of a rule it is to be renamed."""
    for name, rule in (("Zone (old)", "Zone (old)"), ("count(x)", "count(x)")):
        pq.write_table(TABLE.rename_columns(["who", name, "v"]), tmp_path / "t.parquet")
        given = {"user": "who", "value": "v", "bounds": (0, 4)}
        found = shoal.Records(tmp_path / "t.parquet", by=rule, **given, counts="public")  # type: ignore[arg-type]
        assert found.counts().cells.column_names == [name]
    days = TABLE.append_column("day", pa.array(["2024-03-01"] * 3, pa.string()).cast(pa.date32()))
    for names in (["who", "date(day)", "v", "day"], ["who", "date (day)", "v", "other"]):
        pq.write_table(days.rename_columns(names), tmp_path / "t.parquet")
        found = shoal.Records(tmp_path / "t.parquet", by="date(day)", **given, counts="public")  # type: ignore[arg-type]
        with pytest.raises((DataError, ValueError), match="rename the column"):
            found.counts()
