"""In Python, too, what was read is never replaced: its objects know where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import trials
from shoal.errors import DocumentError
from tests.support import flights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.audit

OWN = "never replaced.parquet"


def _source(path: Path) -> tuple[shoal.Records, bytes]:
    pq.write_table(flights.table(), path)
    records = shoal.Records(
        path, user="aircraft", value="speed", bounds=flights.BOUNDS, cell="place"
    )
    return records, path.read_bytes()


@pytest.mark.parametrize("spelled", ["plain", "through a folder", "symbolic link", "hard link"])
@pytest.mark.parametrize(
    "kind",
    [
        *("table", "manifest", "plan", "occupancy", "again"),
        *("counts of a release", "counts of a release again"),
    ],
)
def test_no_output_replaces_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, spelled: str
) -> None:
    """Overwrite=True replaces outputs, not the records, however spelled or linked."""
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path)
    source = tmp_path / OWN
    records, before = _source(source.relative_to(tmp_path) if spelled == "plain" else source)
    plan = shoal.plan(records.occupancy(), method="balanced", bounds=flights.BOUNDS, epsilon=1)
    shoal.Ledger.create("a.ledger", epsilon=1, unit="aircraft")
    release = plan.release(records, ledger="a.ledger", name="May")
    recorded = plan.release(records, ledger="a.ledger", name="May")
    # What is read stays what was read, whatever the working folder is by now.
    monkeypatch.chdir(tmp_path / "x")
    target = source
    if spelled == "through a folder":
        target = tmp_path / "x" / ".." / OWN
    elif spelled == "symbolic link":
        target = tmp_path / "link.parquet"
        target.symlink_to(source)
    elif spelled == "hard link":
        target = tmp_path / "hard.parquet"
        target.hardlink_to(source)
    write: dict[str, Callable[..., None]] = {
        "table": release.write,
        "manifest": release.write_manifest,
        "plan": plan.save,
        "occupancy": records.occupancy().save,
        "again": recorded.write,
        "counts of a release": release.plan.occupancy.save,
        "counts of a release again": recorded.plan.occupancy.save,
    }
    with pytest.raises(DocumentError, match="what is read as records"):
        write[kind](target, overwrite=True)
    assert source.read_bytes() == before
    other = tmp_path / "x" / "other.parquet"
    write[kind](other)
    write[kind](other, overwrite=True)


def test_no_output_replaces_the_ledger(tmp_path: Path) -> None:
    """Not even one that was moved away from its place since."""
    records, _ = _source(tmp_path / OWN)
    plan = shoal.plan(records.occupancy(), method="balanced", bounds=flights.BOUNDS, epsilon=1)
    book = tmp_path / "a.csv.ledger"
    shoal.Ledger.create(book, epsilon=1, unit="aircraft")
    release = plan.release(records, ledger=book, name="May")
    before = book.read_bytes()
    with pytest.raises(DocumentError, match="ledger"):
        release.write(book, overwrite=True)
    with pytest.raises(DocumentError, match="ledger"):
        plan.save(book, overwrite=True)
    assert book.read_bytes() == before
    book.rename(tmp_path / "moved.ledger")
    with pytest.raises(DocumentError, match="ledger"):
        release.write(book)


def test_no_output_replaces_a_loaded_manifest(tmp_path: Path) -> None:
    """It may be all that is left of a release."""
    records, _ = _source(tmp_path / OWN)
    plan = shoal.plan(records.occupancy(), method="balanced", bounds=flights.BOUNDS, epsilon=1)
    place = tmp_path / "release.json"
    plan.release(records, noise=shoal.Simulated(1)).write_manifest(place)
    before, loaded = place.read_bytes(), shoal.Release.load(place)
    for write in (loaded.write, loaded.write_manifest, loaded.plan.occupancy.save):
        with pytest.raises(DocumentError, match="what is read as"):
            write(place, overwrite=True)
    assert place.read_bytes() == before
    arm = np.arange(40) % 2
    trial = trials.UniformPrior(epsilon=1).privatize(
        arm > 0, arm, space=trials.Space.binary(), noise=shoal.Simulated(1)
    )
    trial.write_manifest(tmp_path / "trial.json")
    loaded_trial = trials.PrivateTrial.load(tmp_path / "trial.json")
    with pytest.raises(DocumentError, match="what is read as manifest"):
        loaded_trial.write(tmp_path / "trial.json", overwrite=True)
    trial.write_manifest(tmp_path / "trial.svg")
    with pytest.raises(DocumentError, match="what is read as manifest"):
        shoal.picture(
            trials.PrivateTrial.load(tmp_path / "trial.svg"), tmp_path / "trial.svg", overwrite=True
        )


def test_no_output_replaces_a_loaded_plan(tmp_path: Path) -> None:
    """Neither itself, nor its counts, nor a manifest of it."""
    records, _ = _source(tmp_path / OWN)
    place = tmp_path / "plan.json"
    shoal.plan(records.occupancy(), method="balanced", bounds=flights.BOUNDS, epsilon=1).save(place)
    before, loaded = place.read_bytes(), shoal.Plan.load(place)
    release = loaded.release(records, noise=shoal.Simulated(1))
    for write in (loaded.save, loaded.occupancy.save, release.write_manifest):
        with pytest.raises(DocumentError, match="what is read as"):
            write(place, overwrite=True)
    assert place.read_bytes() == before


def test_no_output_replaces_loaded_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a plan made from them; they are the same counts wherever they come from."""
    monkeypatch.chdir(tmp_path)
    records, _ = _source(tmp_path / OWN)
    counted = records.occupancy()
    counted.save("counts.json")
    place = tmp_path / "counts.json"
    before, loaded = place.read_bytes(), shoal.Occupancy.load("counts.json")
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    plan = shoal.plan(loaded, method="balanced", bounds=flights.BOUNDS, epsilon=1)
    release = plan.release(records, noise=shoal.Simulated(1))
    for write in (loaded.save, plan.save, release.write, release.write_manifest):
        with pytest.raises(DocumentError, match="what is read as"):
            write(place, overwrite=True)
    assert place.read_bytes() == before
    assert loaded.origin == str(place)
    assert loaded.to_document() == counted.to_document()
    assert loaded.fingerprint == counted.fingerprint
    from_records = shoal.plan(counted, method="balanced", bounds=flights.BOUNDS, epsilon=1)
    assert plan.to_document() == from_records.to_document()


@pytest.mark.parametrize("subject", ["occupancy", "plan", "frontier", "comparison", "of a release"])
def test_no_picture_replaces_the_records(tmp_path: Path, subject: str) -> None:
    """Also where a link gives the records a picture's ending."""
    source, link = tmp_path / OWN, tmp_path / "counts.png"
    records, before = _source(source)
    link.symlink_to(source)
    counts = records.occupancy()
    plan = shoal.plan(counts, method="balanced", bounds=flights.BOUNDS, epsilon=1)
    makers: dict[str, Callable[[], Any]] = {
        "occupancy": lambda: counts,
        "plan": lambda: plan,
        "of a release": lambda: plan.release(records, noise=shoal.Simulated(1)).plan,
        "frontier": lambda: plan.frontier(["balanced"], [1]),
        "comparison": lambda: shoal.compare(
            counts, bounds=flights.BOUNDS, epsilon=1, methods=["baseline"], repetitions=2
        ),
    }
    drawn = makers[subject]()
    with pytest.raises(DocumentError, match="what is read as records"):
        shoal.picture(drawn, link, overwrite=True)
    assert source.read_bytes() == before
