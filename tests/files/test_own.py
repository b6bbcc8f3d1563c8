"""Which tables are outputs of shoal: those with all of its columns, in their order, no others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal import files, trials
from shoal.errors import DocumentError
from shoal.files import tables
from shoal.files.own import MARK, is_own
from tests.support import flights

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.unit, pytest.mark.full]

_N = 120
_NUMBERS = "value,low,high,plain,plain_low,plain_high,noise_scale,bias_bound,worst_case_error"
THEIRS = (
    # A column of theirs before, between and behind, or one of ours left out.
    "patient,diagnosis,cluster,arm,outcome,debiased",
    "cluster,arm,patient,outcome,debiased",
    "cluster,arm,outcome,debiased,note",
    "arm,cluster,outcome,debiased",
    "cluster,arm,units,difference,noise_standard_error",
    f"dest,statistic,status,reason,source,users,records,{_NUMBERS},note",
    f"dest,statistic,status,reason,source,users,records,note,{_NUMBERS}",
    "dest,statistic,status,reason,source,users,records,noise_scale,worst_case_error",
    f"statistic,status,reason,source,users,records,{_NUMBERS}",
    "patient,shoal_study",
)


@pytest.mark.parametrize("header", THEIRS)
@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_table_with_columns_of_ones_own_is_kept(tmp_path: Path, header: str, ending: str) -> None:
    """What somebody made of a released table is theirs, also if it has all of ours."""
    path, names = tmp_path / f"analysis.{ending}", header.split(",")
    row = dict.fromkeys(names, "1")
    before = f"{header}\n{','.join(row.values())}\n" if ending == "csv" else json.dumps([row])
    path.write_text(before)
    with pytest.raises(DocumentError, match="shoal did not make"):
        files.write_bytes(path, b"new", overwrite=True)
    assert path.read_text() == before


def test_rows_of_another_shape_among_ours_are_kept(tmp_path: Path) -> None:
    """The first row does not speak for the others."""
    ours = dict.fromkeys(("cluster", "arm", "outcome", "debiased"), 1)
    for at, rows in enumerate(([ours, {**ours, "note": "x"}], [ours, "x"], [])):
        path = tmp_path / f"{at}.json"
        path.write_text(json.dumps(rows))
        assert not is_own(path)


def _released(folder: Path) -> dict[str, pa.Table]:
    """A table of every shape that a release writes."""
    book = shoal.Ledger.create(folder / "a.ledger", epsilon=9, unit="aircraft")
    made: dict[str, pa.Table] = {}
    for name, cell in (("one key", "place"), ("two keys", ["place", "speed, by day"])):
        table = flights.table()
        table = table.append_column("speed, by day", pa.array(np.arange(len(table)) % 2))
        for statistics in (["mean"], ["mean", "variance"]):
            records = flights.records(table, cell=cell)
            plan = shoal.plan(
                records.occupancy(),
                method="balanced",
                bounds=flights.BOUNDS,
                epsilon=1,
                statistics=statistics,
            )
            each = f"{name}, {len(statistics)}"
            made[each] = plan.release(records, ledger=book, name=each).table()
    arm, cluster = np.arange(_N) % 2, np.arange(_N) // 30
    families = (
        trials.UniformPrior,
        trials.BestTable,
        trials.NoisyHorvitzThompson,
        trials.NoisyHistogram,
    )
    for at, family in enumerate(families):
        for unit in (None, np.arange(_N)):
            trial = family(epsilon=1).privatize(
                np.arange(_N) // 7 % 2, arm, cluster, space=trials.Space.binary(), unit=unit
            )
            made[f"trial {at}, {unit is not None}"] = trial.table()
    return made


def test_every_table_of_ours_is_replaced_if_that_is_asked_for(tmp_path: Path) -> None:
    """Tables of all families, statistics and endings are known for earlier outputs."""
    for table in _released(tmp_path).values():
        for ending in ("csv", "json", "parquet"):
            path = tmp_path / f"out.{ending}"
            tables.write(table, path)
            tables.write(table, path, overwrite=True)
            path.unlink()


def test_a_link_that_leads_nowhere_is_kept(tmp_path: Path) -> None:
    """Shoal makes no links; the disk with the records may not be there now."""
    link = tmp_path / "out.csv"
    link.symlink_to(tmp_path / "unmounted" / "records.csv")
    with pytest.raises(DocumentError, match="shoal did not make"):
        files.write_bytes(link, b"new", overwrite=True)
    assert link.is_symlink()


def _changed(table: pa.Table) -> dict[str, pa.Table]:
    """What somebody may make of a table with the same columns and as many rows."""
    first = table.schema.names[0]
    numbers = next(name for name in table.schema.names if pa.types.is_floating(table[name].type))
    at = table.schema.names.index(numbers)
    return {
        "number": table.set_column(at, numbers, pa.array([1e6] * len(table))),
        "order": table.take(np.arange(len(table))[::-1]),
        "null": table.set_column(at, numbers, pa.nulls(len(table), pa.float64())),
        "type": table.set_column(at, numbers, table[numbers].cast(pa.float32(), safe=False)),
        "name": table.rename_columns(["note", *table.schema.names[1:]]),
        "key": table.set_column(0, first, table[first].take(np.zeros(len(table), dtype=int))),
    }


def test_a_table_changed_within_its_shape_is_kept(tmp_path: Path) -> None:
    """Readers hand the mark on, so that it tells of the contents, not of the shape."""
    path, theirs = tmp_path / "out.parquet", tmp_path / "mine.parquet"
    for table in _released(tmp_path).values():
        tables.write(table, path, overwrite=True)
        ours = parquet.read_table(path)
        assert MARK in ours.schema.metadata
        for made in _changed(ours).values():
            parquet.write_table(made.replace_schema_metadata(ours.schema.metadata), theirs)
            before = theirs.read_bytes()
            with pytest.raises(DocumentError, match="shoal did not make"):
                tables.write(table, theirs, overwrite=True)
            assert theirs.read_bytes() == before


def test_no_footer_of_another_length_is_ours(tmp_path: Path) -> None:
    """A file that was cut or spoiled is nobody's output, and gives no traceback."""
    path = tmp_path / "out.parquet"
    tables.write(pa.table({"a": [1.0, 2.0]}), path)
    whole = path.read_bytes()
    for length in (0, 1, len(whole), 2**31, 2**32 - 1):
        path.write_bytes(whole[:-8] + length.to_bytes(4, "little") + whole[-4:])
        assert not is_own(path)
    path.write_bytes(whole)
    assert is_own(path)
