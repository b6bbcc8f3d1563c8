"""Files are made whole or not at all, over nothing that was read, and over others if asked."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import files
from shoal.errors import DocumentError, ShoalError
from shoal.files import tables
from tests.support import flights


def test_a_file_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    """And no draft stays behind."""
    place = tmp_path / "a.json"
    files.write_bytes(place, b"one")
    with pytest.raises(DocumentError, match=r"the file .* exists already.* --force"):
        files.write_bytes(place, b"two")
    assert place.read_bytes() == b"one"
    files.write_bytes(str(place), b"two", overwrite=True)
    assert place.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [place]


def test_a_file_that_appears_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check and the last step somebody may take the name."""
    monkeypatch.setattr(files, "_check_free", lambda *_, **__: None)
    (tmp_path / "a.json").write_bytes(b"theirs")
    with pytest.raises(DocumentError, match="exists already"):
        files.write_bytes(tmp_path / "a.json", b"ours")

    def no_links(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(DocumentError, match="exists already"):
        files.write_bytes(tmp_path / "a.json", b"ours")
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"theirs"]
    files.write_bytes(tmp_path / "b.json", b"ours")
    assert (tmp_path / "b.json").read_bytes() == b"ours"


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part of a file, and the old one as it was."""
    (tmp_path / "old.json").write_bytes(b"old")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No domain left on device")

    monkeypatch.setattr(os, "fsync", full)
    for name in ("old.json", "new.json"):
        with pytest.raises(DocumentError, match="No domain left"):
            files.write_bytes(tmp_path / name, b"new", overwrite=True)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize("path", [None, 3, "", "a\0.json", "plan", "a.ledger", "a.json-journal"])
def test_an_output_is_known_by_its_ending(tmp_path: Path, path: Any) -> None:
    """So none can be a ledger or a part of one."""
    target = tmp_path / path if isinstance(path, str) and "." in path else path
    with pytest.raises(ShoalError):
        files.write_bytes(target, b"x", overwrite=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spelling", ["itself", "roundabout", "symbolic", "hard", "within", "like"])
def test_no_output_is_an_input(tmp_path: Path, spelling: str) -> None:
    """However spelled or linked, forced or not; nor a new file of a folder or pattern."""
    source, folder = tmp_path / "a.csv", tmp_path / "many"
    source.write_bytes(b"records")
    folder.mkdir()
    target, read = source, source
    if spelling == "roundabout":
        target = folder / ".." / "a.csv"
    elif spelling == "within":
        target, read = folder / "b.csv", folder
    elif spelling == "like":
        target, read = tmp_path / "new.CSV", tmp_path / "*.csv"
    elif spelling != "itself":
        target = tmp_path / "link.json"
        (target.symlink_to if spelling == "symbolic" else target.hardlink_to)(source)
    for overwrite in (False, True):
        with pytest.raises(DocumentError, match="the input DATA"):
            files.write_bytes(target, b"x", {"DATA": read}, overwrite=overwrite)
        with pytest.raises(DocumentError, match=r"--output .* the input DATA"):
            files.check_outputs({"--output": target}, {"DATA": read}, overwrite=overwrite)
    assert source.read_bytes() == b"records"


def test_no_output_is_one_of_many_inputs(tmp_path: Path) -> None:
    """Of a pattern that means this folder, too, or one behind a link among them."""
    (tmp_path / "links").mkdir()
    for name in ("a.csv", "store.csv"):
        (tmp_path / name).write_bytes(b"records")
    (tmp_path / "links" / "b.csv").symlink_to(tmp_path / "store.csv")
    for read, target in (
        (tmp_path / "**" / "*.csv", tmp_path / "a.csv"),
        (tmp_path / "**" / "*.csv", tmp_path / "new.csv"),
        (tmp_path / "links" / "*.csv", tmp_path / "store.csv"),
        (tmp_path / "links", tmp_path / "store.csv"),
    ):
        with pytest.raises(DocumentError, match="the input DATA"):
            files.write_bytes(target, b"x", {"DATA": read}, overwrite=True)
    files.write_bytes(tmp_path / "a.csv", b"x", {"DATA": tmp_path / "links"}, overwrite=True)


def test_outputs_are_checked_before_any_work(tmp_path: Path) -> None:
    """Two of one name, folders, pipes, and places that cannot be written are refused."""
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    one = {"--output": tmp_path / "a.csv"}
    for more, words in (
        ({"--manifest": tmp_path / "x" / ".." / "A.csv"}, "also the name of --output"),
        ({"--manifest": tmp_path / "folder.json"}, "not a regular file"),
        ({"--manifest": tmp_path / "pipe.json"}, "not a regular file"),
        ({"--manifest": tmp_path / "none" / "a.json"}, "there is no folder"),
        ({"--manifest": tmp_path / "pipe.json" / "a.json"}, "is no folder"),
    ):
        with pytest.raises(DocumentError, match=words):
            files.check_outputs({**one, **more}, {}, overwrite=True)
    files.check_outputs({**one, "--manifest": None}, {"DATA": None}, overwrite=False)
    assert not (tmp_path / "a.csv").exists()


def test_objects_know_what_they_were_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records, plan, counts, ledger and manifest, whatever the working folder is by then."""
    monkeypatch.chdir(tmp_path)
    source, book = tmp_path / "flights.parquet", "a.ledger"
    pq.write_table(flights.table(), source)
    records = shoal.Records(
        "flights.parquet",
        user="aircraft",
        value="speed",
        bounds=flights.BOUNDS,
        by="place",
        counts="public",
    )
    plan = shoal.plan(records.counts(), method="balanced", bounds=flights.BOUNDS, epsilon=1)
    shoal.Ledger.create(book, epsilon=1, privacy_unit="aircraft", counts="public")
    release = plan.release(records, ledger=book, name="May")
    plan.save("plan.json")
    release.write_manifest("manifest.json")
    loaded, manifest = shoal.Plan.load("plan.json"), shoal.Release.load("manifest.json")
    study = shoal.trials.Experiment(np.arange(40) % 2)
    trial = study.table(shoal.trials.Domain.binary(), 1).release(np.arange(40) > 9, study)
    trial.write_manifest("trial.json")
    again = shoal.trials.Release.load("trial.json")
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    before = {each: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    for write, place in (
        (release.write, source),
        (release.plan.counts.save, source),
        (plan.save, source),
        (loaded.save, tmp_path / "plan.json"),
        (loaded.counts.save, tmp_path / "plan.json"),
        (manifest.write, tmp_path / "manifest.json"),
        (again.write, tmp_path / "trial.json"),
    ):
        with pytest.raises(DocumentError, match="is the input"):
            write(place, overwrite=True)
    assert {each: each.read_bytes() for each in before} == before


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_tables_are_written_by_their_ending(tmp_path: Path, ending: str) -> None:
    """And read back by others."""
    table = pa.table({"cell": ["a", "b,c"], "value": [1.5, None]})
    place = tmp_path / f"out.{ending}"
    tables.write(table, place)
    frame: Any = {"csv": "read_csv", "parquet": "read_parquet", "json": "read_json"}[ending]
    import pandas as pd

    assert getattr(pd, frame)(place)["value"].tolist()[0] == 1.5
    with pytest.raises(DocumentError, match="the input records"):
        tables.write(table, place, {"records": place}, overwrite=True)
