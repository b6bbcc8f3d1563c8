"""Releases of tests are recounted; tests share engines, each in connections of its own."""

from collections.abc import Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import duckdb
import pytest

from shoal.data.engines import DuckDB
from tests.support.recounted import recounting


@pytest.fixture(autouse=True)
def _recounted() -> Iterator[None]:
    """Recount what is delivered."""
    with recounting():
        yield


@pytest.fixture(autouse=True, scope="session")
def _engines_shared() -> Iterator[None]:
    """A DuckDB takes 20 ms to start: tests share one for each configuration, but for its tables."""
    connect, add, known = duckdb.connect, DuckDB.add, dict[str, Any]()

    @wraps(connect)
    def shared(*arguments: Any, **options: Any) -> Any:
        config = dict(options.get("config") or {})
        if not config.pop("temp_directory", None):
            return connect(*arguments, **options)
        if str(config) not in known:
            known[str(config)] = connect(config=config)
        return known[str(config)].cursor()

    def added(own: DuckDB, *function: Any) -> None:
        # Functions are of an engine, for as long as the connection that made them is open.
        for each in (*map(DuckDB, known.values()), own):
            with suppress(duckdb.Error):
                add(each, *function)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", shared)
        patch.setattr(DuckDB, "add", added)
        yield
