"""No verb writes over what it reads, over another of its outputs, or over what is there."""

import os
from pathlib import Path
from typing import Any

import pytest

import shoal
from tests.cli.conftest import ASK, MEAN, PLAN, RELEASES, TRIAL, Shell

COUNTS = ["compare", "counts.json", "--bounds", "0", "700", "--method", "uniform",
          "--setting", "repetitions=2"]  # fmt: skip
# Every verb that writes, what it reads by name, and the options that say where to.
VERBS: dict[str, tuple[list[str], dict[str, str], dict[str, str]]] = {
    "plan": (["plan", "flights.parquet", *PLAN], {"DATA": "flights.parquet"},
             {"--picture": "png", "--output": "json"}),
    "compare": (COUNTS, {"DATA": "counts.json"}, {"--picture": "png"}),
    "release": (RELEASES["cells"], {"PLAN": "plan.json", "--ledger": "flights.ledger"},
                {"--output": "json", "--picture": "png", "--manifest": "json"}),
    "release trial": (RELEASES["table"], {"DATA": "visits.csv", "PLAN": "table.json"},
                      {"--output": "csv", "--manifest": "json"}),
    "release mean": (RELEASES["mean"], {"PLAN": "mean.json"}, {"--manifest": "json"}),
    "trial plan": ([*TRIAL, "--mechanism", "best_table"], {"DATA": "visits.csv"},
                   {"--output": "json"}),
    "trial ask": ([*ASK, "--effect"], {"DATA": "visits.csv"},
                  {"--picture": "png", "--output": "json"}),
    "mean plan": (MEAN, {"DATA": "visits.csv"}, {"--output": "json"}),
    "show": (["show", "m.json"], {"MANIFEST": "m.json"}, {"--picture": "png", "--output": "json"}),
}  # fmt: skip


def _symbolic(name: str, ending: str) -> str:
    Path("first").symlink_to(Path(name).absolute())
    Path(f"link.{ending}").symlink_to("first")
    return f"link.{ending}"


def _hard(name: str, ending: str) -> str:
    os.link(name, f"hard.{ending}")
    return f"hard.{ending}"


def _roundabout(name: str, ending: str) -> str:
    return f"../work/./{name}" if name.endswith(ending) else _symbolic(name, ending)


@pytest.fixture
def place(shell: Shell) -> Shell:
    """The folder with a manifest, which nothing recorded."""
    from tests.support import flights

    done = flights.plan().release(flights.records(), noise=shoal.Simulated(1))
    done.write_manifest("m.json")
    return shell


def test_no_output_is_an_input(place: Shell) -> None:
    """However spelled or linked, forced or not; nothing drawn, charged, changed."""
    for at, (words, inputs, outputs) in enumerate(VERBS.values()):
        (name, path), (option, ending) = [*inputs.items()][-1], [*outputs.items()][-1]
        # A ledger with two names is not opened.
        ways = (_symbolic, _roundabout) if name == "--ledger" else (_symbolic, _roundabout, _hard)
        for force in ([], ["--force"]):
            target = ways[at % len(ways)](path, ending)
            line = place.bad(*words, option, target, *force)
            assert f"is the input {name}" in line
            for each in ("first", f"link.{ending}", f"hard.{ending}"):
                Path(each).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("verb", "option", "ending"),
    [
        ("compare", "--picture", "png"),
        ("release", "--output", "csv"),
        ("release mean", "--manifest", "json"),
        ("show", "--output", "json"),
    ],
)
def test_what_is_there_is_replaced_by_force_alone(
    place: Shell, verb: str, option: str, ending: str
) -> None:
    """A file that is there costs a word."""
    target = Path(f"there.{ending}")
    line = [*VERBS[verb][0], option, str(target)]
    target.write_bytes(b"somebody's work")
    assert "--force" in place.bad(*line)
    place.good(*line, "--force")
    assert target.read_bytes() != b"somebody's work"


def test_the_files_of_a_publication_replace_nothing(place: Shell) -> None:
    """Nothing is charged before all of them can be written."""
    Path("feb-picture.png").write_text("notes")
    publish = ["publish", "flights.parquet", "--like", "m.json", "--name", "feb"]
    line = [*publish, "--ledger", "flights.ledger"]
    assert "exists already" in place.bad(*line)
    Path("feb-picture.png").unlink()
    Path("feb-manifest.json").symlink_to("m.json")
    assert "is the input --like" in place.bad(*line, "--force")


def test_the_demo_replaces_nothing_but_its_own(place: Shell) -> None:
    """A file of one of its names in a folder without its ledger is kept."""
    Path("demo-destination.csv").write_text("notes", encoding="utf-8")
    assert "exists already" in place.bad("demo", "--folder", ".")


def test_a_study_replaces_nothing_unless_forced(place: Shell) -> None:
    """Refused before hours of work, not after them."""
    Path("figures").mkdir()
    Path("figures/002-figure-5.md").write_text("notes", encoding="utf-8")
    assert "exists already" in place.bad("study", "run", "002-figure-5")


def _entry(place: Shell, line: list[str]) -> Any:
    ledger = line[line.index("--ledger") + 1]
    (entry,) = shoal.Ledger(ledger).entries()
    return shoal.Ledger(ledger).find(entry.question, entry.name)


@pytest.mark.parametrize("family", RELEASES)
def test_what_cannot_be_written_after_the_charge_is_not_lost(
    place: Shell, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up in between: the message says where the release is, and it is."""

    def full(_handle: int) -> None:
        raise OSError(28, "No domain left on device")

    line = [*RELEASES[family], "--record", "new.json"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        status, _, said = place.run(*line)
    assert status == 2
    assert "No domain left on device" in said
    assert "recorded as entry 1 of " in said
    assert "under the same name, at no cost" in said
    assert not Path("new.json").exists()
    place.good(*line)
    assert Path("new.json").read_bytes() == _entry(place, line).document


@pytest.mark.parametrize("failure", [OSError(28, "No domain left on device"), TypeError("431.5")])
def test_what_fails_after_the_charge_names_the_entry(
    place: Shell, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full standard output, or a table that cannot be written: the rest is written."""

    def fail(*_: object, **__: object) -> None:
        raise failure

    line = [*RELEASES["cells"], "--force", "--output", "t.csv", "--record", "made.json"]
    for what in ("typer.echo", "shoal.Release.write"):
        for more in ([], ["--json"]):
            with monkeypatch.context() as patch:
                patch.setattr(what, fail)
                status, _, said = place.run(*line, *more)
            assert status == 2
            assert "recorded as entry 1 of flights.ledger" in said
            assert "431.5" not in said
            assert Path("made.json").read_bytes() == _entry(place, line).document
    publish = ["publish", "flights.parquet", "--like", "m.json", "--name", "two"]
    with monkeypatch.context() as patch:
        patch.setattr("shoal.Release.write", fail)
        place.ledger("new.ledger", 2, "aircraft")
        said = place.run(*publish, "--ledger", "new.ledger")[2]
    assert "recorded as entry 1 of new.ledger" in said
