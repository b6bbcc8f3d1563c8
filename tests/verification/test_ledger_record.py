"""A manifest and its ledger: recorded, for this request and unit, at what it costs."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal import documents
from tests.support import flights


@pytest.fixture
def manifest(tmp_path: Path) -> dict[str, Any]:
    """A true manifest, recorded in `flights.ledger`."""
    return flights.plan().release(flights.records(), ledger=flights.ledger(tmp_path)).record


def failed(manifest: dict[str, Any], ledger: shoal.Ledger | Path) -> list[str]:
    """The claims that do not hold."""
    verdict = shoal.verify(manifest, ledger=ledger)
    return [check.claim for check in verdict.checks if not check.holds]


def test_what_was_recorded_holds(manifest: dict[str, Any], tmp_path: Path) -> None:
    """Bytes, request, kind, charge, unit and chain."""
    (path,) = tmp_path.glob("*.ledger")
    assert failed(manifest, path) == []
    claims = {check.claim for check in shoal.verify(manifest, ledger=path).checks}
    assert claims >= {
        *("chain of the ledger", "recorded in the ledger", "request in the ledger"),
        *("kind in the ledger", "charge in the ledger", "unit in the ledger"),
    }


def test_another_entry_with_these_bytes_does_not_do(
    manifest: dict[str, Any], tmp_path: Path
) -> None:
    """A manifest recorded at charge 0, for another request and unit."""
    ledger = shoal.Ledger.create(
        tmp_path / "other.ledger", epsilon=1, privacy_unit="row", counts="public"
    )
    assert failed(manifest, ledger) == ["recorded in the ledger"]
    ledger.record(
        "another question",
        name="",
        privacy_unit=ledger.privacy_unit,
        epsilon=0,
        delta=0,
        document=documents.canonical_bytes(manifest),
    )
    assert failed(manifest, ledger) == [
        *("request in the ledger", "kind in the ledger"),
        *("charge in the ledger", "unit in the ledger"),
    ]


def test_a_changed_chain_is_no_witness(manifest: dict[str, Any], tmp_path: Path) -> None:
    """A ledger that does not hold itself proves nothing."""
    (path,) = tmp_path.glob("*.ledger")
    with sqlite3.connect(path) as connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'entr%'"
        ).fetchone()
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"UPDATE {table} SET epsilon = '1/1000000'")
    assert "chain of the ledger" in failed(manifest, path)
