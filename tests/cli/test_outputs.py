"""No verb writes over what it reads, over another of its outputs, or over what is there."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import shoal
from tests.cli.conftest import PLAN, Shell
from tests.support import flights

pass

pytestmark = pytest.mark.audit

# Every verb that writes, with the files that it reads and the options that say where to.
TRIAL = ["--outcome", "speed", "--treatment", "place", "--space", "bins:0:700", "--epsilon", "1",
         "--privacy-unit", "aircraft"]  # fmt: skip
ASKED = ["--space", "bins:0:700"]
MEAN = ["--epsilon", "1", "--order", "2", "--size", "90", "--interval", "0", "700"]
BY_METHOD = ["--method", "clipped_mean", "--bias", "9", *MEAN]
VERBS: dict[str, tuple[list[str], dict[str, str], dict[str, str]]] = {
    "plan": (
        ["plan", "DATA", *PLAN],
        {"DATA": "flights.parquet"},
        {"--output": "json", "--picture": "png", "--frontier": "svg"},
    ),
    "compare": (["compare", "DATA", *PLAN], {"DATA": "flights.parquet"}, {"--picture": "png"}),
    "compare counts": (
        ["compare", "DATA", "--bounds", "0", "700"],
        {"DATA": "counts.json"},
        {"--picture": "png"},
    ),
    "release": (
        ["release", "DATA", "PLAN", "--ledger", "--ledger"],
        {"DATA": "flights.parquet", "PLAN": "plan.json", "--ledger": "books.ledger"},
        {"--output": "json", "--manifest": "json", "--picture": "png"},
    ),
    "trial plan": (
        ["trial", "plan", "DATA", "--treatment", "place", "--space", "bins:0:700"],
        {"DATA": "flights.parquet"},
        {"--picture": "png"},
    ),
    "trial release": (
        ["trial", "release", "DATA", *TRIAL, "--ledger", "--ledger"],
        {"DATA": "flights.parquet", "--ledger": "books.ledger"},
        {"--output": "json", "--manifest": "json"},
    ),
    "trial ask": (
        ["trial", "ask", "DATA", "--treatment", "place", *ASKED, "--epsilon", "1", "--effect"],
        {"DATA": "flights.parquet"},
        {"--output": "json", "--picture": "png"},
    ),
    "trial answer": (
        [
            *("trial", "answer", "DATA", "--treatment", "place", "--outcome", "speed"),
            *("--plan", "--plan", "--ledger", "--ledger", "--privacy-unit", "aircraft"),
        ],
        {"DATA": "flights.parquet", "--plan": "asked.json", "--ledger": "books.ledger"},
        {"--output": "csv", "--manifest": "json"},
    ),
    "trial regress": (
        ["trial", "regress", "MANIFEST"],
        {"MANIFEST": "answers.json"},
        {"--picture": "png"},
    ),
    "trial estimate": (
        ["trial", "estimate", "MANIFEST"],
        {"MANIFEST": "trial.json"},
        {"--output": "json", "--picture": "png"},
    ),
    "unbiased plan": (
        ["unbiased", "plan", "DATA", "--user", "aircraft", *MEAN],
        {"DATA": "flights.parquet"},
        {"--output": "json"},
    ),
    "unbiased release": (
        [
            *("unbiased", "release", "DATA", "--value", "speed", "--user", "aircraft"),
            *("--plan", "--plan", "--ledger", "--ledger"),
        ],
        {"DATA": "flights.parquet", "--plan": "mean.json", "--ledger": "books.ledger"},
        {"--manifest": "json"},
    ),
}


@pytest.fixture(scope="module")
def files_of_all_verbs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file of every kind that a verb reads."""
    folder = tmp_path_factory.mktemp("verbs")
    pq.write_table(flights.table(), folder / "flights.parquet")
    records = flights.records()
    records.counts().save(folder / "counts.json")
    flights.plan().save(folder / "plan.json")
    shoal.Ledger.create(folder / "books.ledger", epsilon=9, unit="aircraft")
    table = flights.table()
    study, space = shoal.trials.Experiment(table.column("place")), shoal.trials.Space.bins(0, 700)
    asked = study.ask().effect().plan(space, 1)
    asked.save(folder / "asked.json")
    for name, plan in (("trial", study.table(space, 1)), ("answers", asked)):
        plan.release(table.column("speed"), study).write_manifest(folder / f"{name}.json")
    shoal.unbiased.plan(
        "clipped_mean",
        list(Counter(table.column("aircraft").to_pylist()).values()),
        moment=shoal.unbiased.Moment(2, 90),
        epsilon=1,
        interval=(0, 700),
        bias=9,
    ).save(folder / "mean.json")
    return folder


@pytest.fixture
def place(
    files_of_all_verbs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    """A copy of that folder to work in, with a symbolic link to itself."""
    folder = tmp_path / "work"
    shutil.copytree(files_of_all_verbs, folder)
    (folder / "same").symlink_to(folder)
    monkeypatch.chdir(folder)
    return Shell(folder, capsys)


def _itself(name: str, _ending: str) -> str:
    return name


def _absolute(name: str, _ending: str) -> str:
    return str(Path(name).absolute())


def _roundabout(name: str, _ending: str) -> str:
    return f"same/../work/./same/{name}"


def _symbolic(name: str, ending: str) -> str:
    Path(f"link.{ending}").symlink_to(name)
    return f"link.{ending}"


def _chain(name: str, ending: str) -> str:
    Path("first").symlink_to(Path(name).absolute())
    Path(f"second.{ending}").symlink_to("same/first")
    return f"second.{ending}"


def _hard(name: str, ending: str) -> str:
    os.link(name, f"hard.{ending}")
    return f"hard.{ending}"


SPELLINGS = (_itself, _symbolic, _hard, _absolute, _roundabout, _chain)
# Of each verb one file that it reads, spelled in one of these ways.
CASES = [
    (verb, list(outputs)[-1], list(inputs)[-1], SPELLINGS[number % 3 + 1])
    for number, (verb, (_, inputs, outputs)) in enumerate(VERBS.items())
]


def _arguments(verb: str) -> list[str]:
    words, inputs, _ = VERBS[verb]
    found = []
    for at, word in enumerate(words):
        option = word.startswith("--") and (at == 0 or words[at - 1] != word)
        found.append(word if option or word not in inputs else inputs[word])
    return found


def _state(folder: Path) -> dict[str, tuple[bytes, int]]:
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_file():
            found[path.name] = path.read_bytes(), path.stat().st_mtime_ns
        else:
            found[path.name] = b"", path.lstat().st_mtime_ns
    return found


def _refused(place: Shell, arguments: list[str], message: str) -> str:
    before = _state(place.folder)
    line = place.bad(*arguments)
    assert message in line, line
    assert _state(place.folder) == before
    for second in place.folder.glob("hard.*"):  # a ledger with two names is not opened
        second.unlink()
    assert shoal.Ledger("books.ledger").entries() == []
    return line


def test_no_output_is_an_input(place: Shell) -> None:
    """However spelled or linked, forced or not; nothing drawn, charged, changed."""
    for verb, option, name, spelling in CASES:
        _, inputs, outputs = VERBS[verb]
        if spelling is _absolute and not inputs[name].endswith(outputs[option]):
            spelling = _symbolic
        for force in ([], ["--force"]):
            target = spelling(inputs[name], outputs[option])
            line = [*_arguments(verb), option, target, *force]
            _refused(place, line, f"is what is read as {name}")
            Path(f"link.{outputs[option]}").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("verb", "target"),
    [("release", "same/../work/./same/plan.json"), ("trial estimate", "second.json")],
)
def test_no_output_is_an_input_by_another_path(place: Shell, verb: str, target: str) -> None:
    """Round about, by its own name, and by a chain of links."""
    if target == "second.json":
        _chain("trial.json", "json")
    _refused(place, [*_arguments(verb), "--output", target, "--force"], "is what is read as")


def test_no_two_outputs_are_one_file(place: Shell) -> None:
    """Also where the file is not there yet, or names differ in case alone."""
    for verb, one, other in (
        ("release", "new.json", "new.json"),
        ("trial release", "new.json", "./same/new.json"),
        ("release", "new.json", f"{place.folder}/new.json"),
        ("trial release", "new.json", "NEW.json"),
    ):
        for force in ([], ["--force"]):
            line = [*_arguments(verb), "--output", one, "--manifest", other, *force]
            _refused(place, line, "is the place of --output")


@pytest.mark.parametrize(
    ("verb", "option", "ending"),
    [
        ("plan", "--frontier", "svg"),
        ("release", "--picture", "png"),
        ("trial answer", "--output", "csv"),
        ("unbiased release", "--manifest", "json"),
    ],
)
def test_what_is_there_is_replaced_by_force_alone(
    place: Shell, verb: str, option: str, ending: str
) -> None:
    """A file that is there costs a word; a ledger or folder is never replaced."""
    target = Path(f"there.{ending}")
    target.write_bytes(b"somebody's work")
    line = [*_arguments(verb), option, str(target)]
    assert "--force" in _refused(place, line, "there is a file")
    target.unlink()
    target.mkdir()
    _refused(place, [*line, "--force"], "is no regular file")
    target.rmdir()
    os.mkfifo(target)
    _refused(place, [*line, "--force"], "is no regular file")
    target.unlink()
    target.symlink_to("/dev/null")
    _refused(place, [*line, "--force"], "is no regular file")
    target.unlink()
    target.write_bytes(b"somebody's work")
    place.good(*line, "--force")
    assert target.read_bytes() != b"somebody's work"


@pytest.mark.parametrize("name", ["books.ledger-journal", "other.ledger", "plan"])
def test_no_output_is_a_ledger_or_a_part_of_one(place: Shell, name: str) -> None:
    """Outputs are known by their endings."""
    for verb in ("release", "trial release", "unbiased release"):
        line = [*_arguments(verb), "--manifest", name]
        _refused(place, line, "a name that ends in")


def test_no_output_lies_in_a_folder_of_records(place: Shell) -> None:
    """A file among records would be read as records the next time."""
    Path("records.parquet").mkdir()
    Path("records.parquet/a").mkdir()
    line = ["plan", "records.parquet", *PLAN, "--output", "same/records.parquet/a/plan.json"]
    _refused(place, line, "is what is read as DATA")


def test_a_study_replaces_nothing_unless_forced(place: Shell) -> None:
    """Refused before hours of work, not after them."""
    Path("figures").mkdir()
    Path("figures/002-figure-5.md").write_text("notes", encoding="utf-8")
    _refused(place, ["study", "run", "002-figure-5"], "there is a file")
    assert Path("figures/002-figure-5.md").read_text(encoding="utf-8") == "notes"


def test_the_demo_replaces_nothing_but_its_own(place: Shell) -> None:
    """A file of one of its names in a folder without its ledger is kept."""
    Path("demo-destination.csv").write_text("notes", encoding="utf-8")
    _refused(place, ["demo", "--folder", "."], "there is a file")


@pytest.mark.parametrize(
    ("how", "name"), [("--epsilon 2 --unit tailnum", "May"), ("--epsilon 2 --unit person", "2013")]
)
def test_the_demo_spends_nothing_of_anybodys_ledger(place: Shell, how: str, name: str) -> None:
    """Neither of one with the README's name nor, forced, of one with its own."""
    for book in ("flights.ledger", "shoal-demo.ledger"):
        place.good("ledger", "create", book, *how.split())
        unit = how.rsplit(" ", 1)[-1]
        asked = {"unit": unit, "epsilon": "0.1", "kind": "cells", "name": name}
        shoal.Ledger(book).record("mine", document=b"1", **asked)
    for path in ("destination.csv", "demo-origin-hour.csv"):
        Path(path).write_text("notes", encoding="utf-8")
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    for more in ([], ["--force"]):
        status, _, said = place.run("demo", "--folder", ".", *more)
        assert (status, said.count("\n")) == (2, 1)
        assert "is not of this demo alone" in said
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


@pytest.mark.parametrize("verb", ["release", "trial release", "unbiased release"])
def test_what_cannot_be_written_after_the_charge_is_not_lost(
    place: Shell, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up in between: the message says where the release is, and it is."""

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    line = [*_arguments(verb), "--manifest", "new.json"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        said = place.bad(*line)
    assert "No space left on device" in said
    assert "recorded as entry 1 of books.ledger" in said
    assert "under the same name, which costs nothing" in said
    assert not Path("new.json").exists()
    (entry,) = shoal.Ledger("books.ledger").entries()
    place.good(*line)
    book = shoal.Ledger("books.ledger")
    kept = book.find(entry.question, entry.name)
    assert kept is not None
    assert Path("new.json").read_bytes() == kept.document
    assert len(shoal.Ledger("books.ledger").entries()) == 1


@pytest.mark.parametrize("verb", ["release", "trial release", "unbiased release"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), RuntimeError("x")])
def test_what_cannot_be_shown_after_the_charge_is_not_lost(
    place: Shell, verb: str, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where standard output is full the message says where the release is, too."""

    def full(*_arguments: object, **_options: object) -> None:
        raise failure

    line = _arguments(verb)
    for more in ([], ["--json"]):
        with monkeypatch.context() as patch:
            patch.setattr("typer.echo", full)
            said = place.bad(*line, "--name", "one", *more)
        assert "recorded as entry 1 of books.ledger" in said
        assert "costs nothing" in said
    assert len(shoal.Ledger("books.ledger").entries()) == 1
