"""Every release that a test makes is recounted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.recounted import recounting


@pytest.fixture(autouse=True)
def _recounted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Recount what is delivered, unless a mark says why not."""
    if request.node.get_closest_marker("not_recounted"):
        yield
        return
    with recounting():
        yield
