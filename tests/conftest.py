"""Releases of tests are recounted; tests share engines, each in connections of its own."""

from collections.abc import Iterator
from functools import wraps
from typing import Any

import duckdb
import pytest

from tests.support.recounted import recounting


@pytest.fixture(autouse=True)
def _recounted() -> Iterator[None]:
    """Recount what is delivered."""
    with recounting():
        yield


class Connection:
    """One of a shared engine: tables go when it is closed, and so do functions."""

    def __init__(self, own: Any) -> None:
        self.own, self.functions = own, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def create_function(self, name: str, *more: Any, **options: Any) -> None:
        self.own.create_function(name, *more, **options)
        self.functions.append(name)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.functions:
            self.own.remove_function(name)
        self.own.close()


@pytest.fixture(autouse=True, scope="session")
def _engines_shared() -> Iterator[None]:
    """A DuckDB takes 20 ms to start: tests share one for each configuration.

    `duckdb.connect.__wrapped__` starts one with a folder to spill to, as outside of tests.
    """
    connect, known = duckdb.connect, dict[str, Any]()

    @wraps(connect)
    def shared(*arguments: Any, **options: Any) -> Any:
        config = dict(options.get("config") or {})
        if arguments or [*options] != ["config"] or not config.pop("temp_directory", None):
            return connect(*arguments, **options)
        if str(config) not in known:
            known[str(config)] = connect(config=config)
        return Connection(known[str(config)].cursor())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", shared)
        yield
