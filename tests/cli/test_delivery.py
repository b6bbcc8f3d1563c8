"""What fails after a charge says so and is written as far as it can; the rest is refused before."""

import sys
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.errors import MissingPartError
from tests.cli.conftest import Shell

pytestmark = pytest.mark.audit

_RELEASE = ("release", "flights.parquet", "plan.json", "--ledger", "flights.ledger")


def test_a_matplotlib_that_cannot_draw_is_refused_before_the_charge(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python, by the verbs with pictures, and by the demo."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPartError, match="no pictures without matplotlib"):
        shoal.picture(shoal.Plan.load("plan.json"), "p.png")
    assert "no pictures without" in shell.bad(*_RELEASE, "--picture", "p.png")
    assert shoal.Ledger("flights.ledger").entries() == []
    assert "no pictures without" in shell.bad("demo", "--folder", "new")
    assert not Path("new").exists()


def test_what_can_be_written_is(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever one output fails with, and what is said names the entry."""

    def failing(*_: Any, **__: Any) -> None:
        raise TypeError("431.5")

    monkeypatch.setattr(shoal.Release, "write", failing)
    told = shell.bad(*_RELEASE, "--output", "t.csv", "--manifest", "m.json")
    assert "recorded as entry 1" in told
    assert "unexpected TypeError after the charge" in told
    assert "431.5" not in told
    assert not Path("t.csv").exists()
    assert shoal.verify("m.json").holds


def test_an_unforeseen_error_does_not_say_that_nothing_was_charged(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then a verb may have charged and delivered."""

    def failing(*_: Any, **__: Any) -> None:
        raise TypeError("431.5")

    monkeypatch.setattr(shoal.Plan, "load", failing)
    told = shell.bad(*_RELEASE)
    assert told.startswith("shoal: unexpected TypeError; please report it; ask again: what a ")
    assert "431.5" not in told
