"""The table of guarantees says which tests and attacks there are."""

from __future__ import annotations

import pytest

from tests.repository.guarantee_table import PAGE, table

pytestmark = pytest.mark.unit


def rows(page: str) -> dict[str, tuple[set[str], set[str]]]:
    """Tests and attacks of each guarantee, as a page lists them."""
    found = {}
    for line in page.splitlines():
        if line.startswith("| G-"):
            name, *_, tests, attacks = (part.strip() for part in line.strip("|").split("|"))
            found[name] = set(tests.split(", ")), set(attacks.split("; ")) - {""}
    return found


def test_a_test_of_two_promises_is_listed_under_both() -> None:
    """As intervals without a prior are: certified ones, and those of a private radius."""
    listed = rows(table(PAGE.read_text(encoding="utf-8")))
    for name in ("G-COVERAGE", "G-SHRINK"):
        assert "`cells/test_posterior.py`" in listed[name][0]


def test_what_the_table_of_guarantees_lists_is_there() -> None:
    """Every listed test names the guarantee, every listed attack is on it; none is without test.

    `make guarantees` renews the table; what is newer than it is no fault.
    """
    page = PAGE.read_text(encoding="utf-8")
    listed, true = rows(page), rows(table(page))
    assert listed.keys() == true.keys()
    for name, (tests, attacks) in listed.items():
        assert tests & true[name][0], name
        assert tests - {""} <= true[name][0], name
        assert attacks <= true[name][1], name
