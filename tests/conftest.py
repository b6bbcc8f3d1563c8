"""Every release that a test makes is recounted."""

from collections.abc import Iterator

import pytest

from tests.support.recounted import recounting


@pytest.fixture(autouse=True)
def _recounted() -> Iterator[None]:
    """Recount what is delivered."""
    with recounting():
        yield
