"""A tenth of the golden requests; `make golden` compares all of them."""

import pytest

from tests.golden.compare import KINDS, compare, shown

# Which of ten requests are compared here.
TENTH = 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_tenth(kind: str) -> None:
    """No difference but for the last places."""
    found = [f"{kind} {at}: {shown(each)}" for at, each in compare(kind, TENTH)]
    assert not found, "\n".join(found[:20])
