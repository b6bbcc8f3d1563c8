"""Verbs of other distributions: found when asked for, and missed in one line."""

import pytest

from shoal.cli import main
from tests.cli.conftest import Shell


def test_verbs_of_the_studies_are_there(shell: Shell) -> None:
    """`shoal study` and `shoal bench` come through entry points."""
    assert "002-figure-5" in shell.good("study", "list")
    assert "numbers a second" in shell.good("bench", "noise", "--numbers", "1000")


@pytest.mark.parametrize("verb", ["bench noise", "study list"])
def test_without_the_distribution_the_verbs_are_missed_in_one_line(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line says which distribution has the verb, and how to install it."""
    monkeypatch.setattr(main, "entry_points", lambda **_: ())
    monkeypatch.setattr(main.app, "registered_groups", main.app.registered_groups[:3])
    assert main.main(verb.split()) == main.FAILED
    [line] = capsys.readouterr().err.splitlines()
    assert "shoal-studies" in line
    assert "pip install ./studies" in line
