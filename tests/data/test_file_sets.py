"""Several files are the table of their rows, whatever their order; any doubt is refused."""

from __future__ import annotations

import gzip
import io
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import files
from shoal.data import csv_file, one_pass
from shoal.data.csv_records import count_records
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError, DocumentError, InputError, ShoalError

pytestmark = pytest.mark.audit

HEAD = "who,place,v\n"
ROWS = [f"u{n % 7},{n % 3},{n % 8}\n" for n in range(60)]
ENDINGS = [".csv", ".csv.gz", ".parquet"]


def write(path: Path, rows: list[str], head: str = HEAD) -> None:
    """A file of rows, as its ending says; columns of Parquet are texts and integers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = (head + "".join(rows)).encode()
    if path.suffix == ".parquet":
        options = pyarrow.csv.ConvertOptions(column_types={"who": pa.string(), "v": pa.int64()})
        pq.write_table(pyarrow.csv.read_csv(io.BytesIO(raw), convert_options=options), path)
    else:
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def records(source: object, **wanted: Any) -> shoal.Records:
    """Values by place."""
    given = {"user": "who", "value": "v", "bounds": (0, 8), "cell": "place", **wanted}
    return shoal.Records(source, **given)


def refused(source: object, message: str, **wanted: Any) -> str:
    """The one line that is said of it."""
    with pytest.raises(ShoalError, match=message) as caught:
        records(source, **wanted).occupancy()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def split(folder: Path, ending: str) -> shoal.Records:
    """Three files of a folder."""
    for name, rows in (("b", ROWS[:9]), ("a", ROWS[9:31]), ("c", ROWS[31:])):
        write(folder / f"{name}{ending}", rows)
    return records(f"{folder}/*{ending}")


@given(
    owners=st.lists(st.integers(0, 4), min_size=len(ROWS), max_size=len(ROWS)),
    names=st.permutations("abcde"),
    ending=st.sampled_from(ENDINGS),
)
@settings(max_examples=15)
def test_rows_may_be_split_over_files(owners: list[int], names: list[str], ending: str) -> None:
    """One file, or the same rows in many files of any names: one fingerprint, one sum."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder / f"whole{ending}", ROWS)
        for at, name in enumerate(names):
            rows = [row for row, owner in zip(ROWS, owners, strict=True) if owner == at]
            if rows or ending != ".parquet":
                write(folder / "set" / (name + ending), rows[:: -1 if at % 2 else 1])
        whole = records(folder / f"whole{ending}").aggregate()
        found = records(folder / "set" / f"*{ending}").aggregate()
    assert found.occupancy.fingerprint == whole.occupancy.fingerprint
    assert found.cell_sums() == whole.cell_sums()


@pytest.mark.parametrize("ending", ENDINGS)
def test_text_and_path_are_alike_and_stay_where_they_were(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern is one of the folder where it was named; files are called as it was."""
    split(tmp_path / "here" / "trips", ending)
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    kept = [records(f"trips/*{ending}"), records(Path("trips") / f"*{ending}")]
    write(Path(f"trips/0{ending}"), ROWS[:2], HEAD.replace("v", "w"))
    monkeypatch.chdir(tmp_path / "there")
    messages = {refused(each.source, "no column 'v' in|the column") for each in kept}
    assert all(f"'trips/0{ending}'" in each for each in messages)
    assert len(messages) == 1
    (tmp_path / "here" / f"trips/0{ending}").unlink()
    first, second = (each.occupancy() for each in kept)
    assert first.fingerprint == second.fingerprint
    assert first.origin == second.origin == str(tmp_path / "here" / "trips" / f"*{ending}")


def test_the_working_folder_is_no_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets in its name, and folders above that are called like columns."""
    for name, rows in (("k=[1]", ROWS), ("k=1", ROWS[:9])):
        write(tmp_path / name / "month=5" / "a.parquet", rows)
    monkeypatch.chdir(tmp_path / "k=[1]")
    found = records("*/*.parquet", cell=["place", "month"])
    monkeypatch.chdir(tmp_path)
    assert int(found.occupancy().count.sum()) == len(ROWS)
    assert "'month=5/a.parquet'" in refused(_odd(found), "the column")
    # A file that was there when it was named does not become a pattern once it is gone.
    write(tmp_path / "a[1].csv", ROWS)
    named = records("a[1].csv")
    (tmp_path / "a[1].csv").rename(tmp_path / "a1.csv")
    with pytest.raises(DataError, match=r"no file at 'a\[1\].csv'"):
        named.occupancy()


def _odd(kept: shoal.Records) -> object:
    """The same source with a file of other columns, which stands first."""
    folder = Path(kept.source.place).parents[1]
    write(Path(str(folder).replace("[[]", "[")) / "month=4" / "b.parquet", ROWS, "who,place,w\n")
    return kept.source


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("change", ["appears", "changes", "goes"])
def test_a_set_that_changes_meanwhile_is_refused(
    tmp_path: Path, ending: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is written, added or taken away while the others are read."""
    kept, run = split(tmp_path, ending), one_pass.run

    def late(*given: object, **wanted: object) -> object:
        found = run(*given, **wanted)  # type: ignore[arg-type]
        if change == "goes":
            (tmp_path / f"c{ending}").unlink()
        else:
            write(tmp_path / f"{'d' if change == 'appears' else 'c'}{ending}", ROWS[:20])
        return found

    monkeypatch.setattr(one_pass, "run", late)
    with pytest.raises(DataError, match="changed while it was read"):
        kept.occupancy()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_more_is_no_longer_what_was_planned(tmp_path: Path, ending: str) -> None:
    """Between the plan and the release; nothing is charged."""
    kept = split(tmp_path / "trips", ending)
    plan = shoal.plan(kept.occupancy(), bounds=(0, 8), epsilon=1, uninformative="keep")
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=2, unit="who")
    write(tmp_path / "trips" / f"d{ending}", ROWS[:5])
    with pytest.raises(DataError, match="public counts"):
        plan.release(kept, ledger=ledger, name="May")
    assert not ledger.entries()
    (tmp_path / "trips" / f"d{ending}").unlink()
    assert plan.release(kept, ledger=ledger, name="May").entry.number == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_have_the_same_columns(tmp_path: Path, ending: str) -> None:
    """Another name, order or type: the file and the column are named."""
    split(tmp_path, ending)
    odd = tmp_path / f"odd{ending}"
    heads = {"who,place,w\n": "v", "who,place,v,tip\n": "tip", "who,v\n": "place"}
    for head, column in heads.items():
        row = ",".join("1" for _ in head.split(",")) + "\n"
        write(odd, [row], head)
        line = refused(f"{tmp_path}/*{ending}", f"{column!r}")
        assert f"odd{ending}'" in line
    if ending == ".parquet":
        pq.write_table(pa.table({"who": ["u"], "place": [1], "v": [0.5]}), odd)
        assert "is double, but int64 in" in refused(f"{tmp_path}/*{ending}", "odd.parquet")
        pq.write_table(pa.table({"v": [1], "place": [1], "who": ["u9"]}), odd)
        assert records(f"{tmp_path}/*{ending}").occupancy().n_users == 8
    else:
        write(odd, ["u1,3,1\n"], "who,v,place\n")
        assert "column 2 of" in refused(f"{tmp_path}/*{ending}", f"odd{ending}")


def test_every_file_keeps_its_own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quote that is never closed, and counts that make up for one another."""
    kept = split(tmp_path, ".csv")
    write(tmp_path / "odd.csv", ['u1,1,"3\n'])
    assert "odd.csv' is malformed" in refused(kept.source, "malformed")
    (tmp_path / "odd.csv").unlink()
    count, more = count_records, {"a.csv": 1, "b.csv": -1}
    monkeypatch.setattr(
        csv_file, "count_records",
        lambda path, columns: count(path, columns=columns) + more.get(Path(path).name, 0),
    )  # fmt: skip
    assert "a.csv' is malformed" in refused(kept.source, "malformed")


def test_no_file_counts_twice(tmp_path: Path) -> None:
    """A link beside the file that it leads to."""
    kept = split(tmp_path, ".csv")
    for link in ((tmp_path / "d.csv").symlink_to, (tmp_path / "d.csv").hardlink_to):
        link(tmp_path / "a.csv")
        assert "d.csv', which is the same file as" in refused(kept.source, "the same file")
        (tmp_path / "d.csv").unlink()


def hive(folder: Path) -> Path:
    """Months in folders, of which one is missing and one is no plain text."""
    for name, rows in (("5", ROWS[:9]), ("06", ROWS[9:20]), ("a%20b%2Fc", ROWS[20:40])):
        write(folder / f"month={name}" / "kind=1" / "p.parquet", rows)
    write(folder / "month=__HIVE_DEFAULT_PARTITION__" / "kind=22" / "q.parquet", ROWS[40:])
    (folder / "_SUCCESS").touch()
    (folder / ".a.crc").touch()
    return folder


def test_folders_are_columns(tmp_path: Path) -> None:
    """Whole numbers if all are, else texts; missing ones as anywhere."""
    source = hive(tmp_path / "trips")
    found = records(source, cell=["kind", "month"], missing="public").occupancy()
    assert found.cells.column("kind").to_pylist() == [1, 1, 1]
    assert found.cells.column("month").to_pylist() == ["06", "5", "a b/c"]
    assert sorted(found.totals.tolist()) == [9, 11, 20]
    assert "null in the column 'month'" in refused(source, "null", cell="month")
    assert (
        records(source).occupancy().fingerprint
        == records(f"{source}/*/*/*.parquet").occupancy().fingerprint
    )
    deep = f"{source}/**/*.parquet"
    users = read_columns(deep, private={"value": "v"}, public={"user": "kind"}).column("kind")
    assert set(users.to_pylist()) == {1, 22}
    for texts, kind in (
        (("true", "FALSE"), pa.bool_()),
        (("2013-01-02", "2013-02-28"), pa.date32()),
        (("2013-01-02", "2013-02-30"), pa.string()),
        (("-3", "7"), pa.int64()),
    ):
        folder = tmp_path / texts[1]
        for text in texts:
            write(folder / f"key={text}" / "p.parquet", ROWS[:9])
        assert records(folder, cell="key").occupancy().cells.schema.field("key").type == kind


def test_a_folder_is_no_private_column(tmp_path: Path) -> None:
    """Names of folders are public; what a file says itself comes before them."""
    source = hive(tmp_path / "trips")
    with pytest.raises(InputError, match="the value column 'kind', which folders"):
        records(source, value="kind").occupancy()
    with pytest.raises(InputError, match="the outcome column 'kind', which folders"):
        read_columns(source, private={"outcome": "kind"}, public={})
    own = tmp_path / "own"
    write(own / "place=9" / "p.parquet", ROWS)
    assert records(own).occupancy().cells.column(0).to_pylist() == [0, 1, 2]
    write(own / "place=9" / "month=5" / "p.parquet", ROWS)
    (own / "place=9" / "p.parquet").unlink()
    refused(own, "named for a column of the files", cell=["place", "month"])
    above = tmp_path / "v=3" / "trips"
    write(above / "month=5" / "p.parquet", ROWS)
    assert records(above).occupancy().n_cells == 3
    refused(above, "named for a column of the files", cell="month")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["month=5/p.parquet", "p.parquet"], "folders of other columns"),
        (["month=5/p.parquet", "day=5/p.parquet"], "folders of other columns"),
        (["month=5/month=6/p.parquet"], "another's name"),
        (["month=/p.parquet"], "no plain name and value"),
        (["month=5=6/p.parquet"], "no plain name and value"),
        (["m%20=5/p.parquet"], "no plain name and value"),
        (["month=5\\x/p.parquet", "month=5/p.parquet"], "no plain name and value"),
        (["p.parquet", "_delta_log/0.json"], "'trips/_delta_log', the notes of Delta Lake"),
        (["month=5/_temporary/p.parquet"], "'trips/month=5/_temporary', the notes of an unfini"),
        (["month=%ff/p.parquet"], "no text in UTF-8"),
        (["old/p.parquet", "month=5/p.parquet"], "'trips/old', another folder in a folder"),
        (["month=5/p.csv"], "'trips/month=5/p.csv', a file of another kind"),
        (["_notes.parquet"], "a folder 'trips' without Parquet files"),
    ],
)
def test_folders_of_other_kinds_are_refused(
    tmp_path: Path, names: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left out without a word but notes, which begin with a dot or line."""
    monkeypatch.chdir(tmp_path)
    for name in names:
        write(Path("trips") / name, ROWS)
    refused("trips", message)


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty pattern, a missing file, a folder, a folder that a pattern finds."""
    monkeypatch.chdir(tmp_path)
    refused("trips/*.csv", r"no file whose name is like 'trips/\*.csv'")
    refused("a[.csv", "no file whose name is like")
    refused("gone.csv.gz", "no file at 'gone.csv.gz'")
    Path("d.csv").mkdir()
    refused("*", "a file that ends in .parquet, .pq, .csv, .csv.gz, .csv.zst, a pattern")
    refused("d.csv", "a folder at 'd.csv'")
    refused("*.csv", "a folder at 'd.csv'")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 PAR1")
    refused("*.parquet", "could not read 'bad.parquet'")


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_output_becomes_a_part_of_the_records(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one of the files nor a new one of the pattern, through links, too."""
    occupancy = split(tmp_path / "trips", ending).occupancy()
    monkeypatch.chdir(tmp_path / "trips")
    (tmp_path / "link").symlink_to(tmp_path / "trips")
    (tmp_path / "leads to a new one").symlink_to(tmp_path / "trips" / f"new{ending}")
    (tmp_path / "leads to an old one").symlink_to(tmp_path / "trips" / f"a{ending}")
    before = {each.name: each.read_bytes() for each in (tmp_path / "trips").iterdir()}
    for target in (f"a{ending}", f"new{ending}", f"NEW{ending.upper()}", f"../link/x{ending}",
                   "../leads to a new one", "../leads to an old one"):  # fmt: skip
        with pytest.raises(DocumentError, match="one of the files that are read as records"):
            occupancy.save(target, overwrite=True)
    assert {each.name: each.read_bytes() for each in Path().iterdir()} == before
    occupancy.save("counts.json")
    folder = hive(tmp_path / "hive")
    with pytest.raises(DocumentError, match="what is read as records"):
        records(folder).occupancy().save(folder / "month=5" / "counts.json")


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_no_output_replaces_what_links_in_a_folder_lead_to(tmp_path: Path, linked: str) -> None:
    """Records are all that a folder reaches, wherever it lies."""
    folder = tmp_path / "trips"
    far = tmp_path / "far" / "p.parquet"
    write(far, ROWS)
    folder.mkdir()
    if linked == "file":
        (folder / "p.parquet").symlink_to(far)
    else:
        (folder / "month=5").symlink_to(far.parent)
    occupancy, before = records(folder).occupancy(), far.read_bytes()
    for target in [far] if linked == "file" else [far, far.with_name("new.json")]:
        with pytest.raises(DocumentError, match="what is read as records"):
            occupancy.save(target, overwrite=True)
    assert far.read_bytes() == before


def test_links_that_lead_back_end(tmp_path: Path) -> None:
    """A circle of folders is walked once."""
    write(tmp_path / "trips" / "p.parquet", ROWS)
    (tmp_path / "trips" / "deep").mkdir()
    (tmp_path / "trips" / "deep" / "back").symlink_to(tmp_path / "trips")
    with pytest.raises(DocumentError, match="what is read as records"):
        files.write_bytes(
            tmp_path / "trips" / "deep" / "x.csv", b"", {"records": tmp_path / "trips"}
        )


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["x", "*"])
def test_two_dots_behind_a_link_lead_where_the_system_goes(
    tmp_path: Path, ending: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines would shorten the text, and read another file than the one that is named."""
    monkeypatch.chdir(tmp_path)
    write(Path("else/g") / f"x{ending}", ROWS)
    write(Path("g") / f"x{ending}", ROWS[:1])
    Path("else/deep").mkdir()
    Path("link").symlink_to(tmp_path / "else" / "deep")
    given = f"link/../g/{name}{ending}"
    assert int(records(given).occupancy().totals.sum()) == len(ROWS)
    with pytest.raises(DocumentError, match="read as records"):
        records(given).occupancy().save(Path("else/g") / f"x{ending}", overwrite=True)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("given", ["./trips/*", "trips/./*", "trips//*", "../{}/trips/*"])
def test_a_place_is_spelled_in_several_ways(
    tmp_path: Path, ending: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dots and doubled separators mean what they mean to the system."""
    whole = split(tmp_path / "trips", ending).aggregate()
    monkeypatch.chdir(tmp_path)
    found = records(given.format(tmp_path.name) + ending).aggregate()
    assert found.cell_sums() == whole.cell_sums()


def test_backslashes_above_a_set_are_refused_where_folders_are_columns(tmp_path: Path) -> None:
    """Engines take them for ends of folders' names, and read other columns."""
    folder = tmp_path / "a\\month=9" / "trips"
    write(folder / "month=5" / "p.parquet", ROWS)
    refused(folder, "a folder with a backslash", cell="month")
    assert int(records(folder).occupancy().totals.sum()) == len(ROWS)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "pattern",
    ["**/*", "**/**/*", "**/**/**/*", "*/../*/x/*", "*/x/../x/*", "May/**/../x/*", "May/**/**/*"],
)
def test_a_file_that_a_pattern_finds_twice_is_read_once(
    tmp_path: Path, ending: str, pattern: str
) -> None:
    """Where rows are persons each would lose a multiple of what is charged."""
    write(tmp_path / "May" / "x" / f"t{ending}", ROWS)
    (tmp_path / "June").mkdir()
    place = f"{tmp_path}/{pattern}{ending}"
    assert int(records(place).occupancy().totals.sum()) == len(ROWS)
    found = read_columns(place, private={"value": "v"}, public={"unit": None})
    assert found.num_rows == len(ROWS)
