"""A reduced run of every attack of the evidence bench, and the bench itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.evidence import running
from tests.evidence.__main__ import _first
from tests.evidence.finding import ATTACKS, Outcome, together
from tests.evidence.page import Circumstances, page
from tests.evidence.part import load
from tests.evidence.running import Piece, Ran, finished, pieces, run_piece

pytestmark = pytest.mark.audit

ROOT = Path(__file__).parents[2]


def nothing(module: str, more: int) -> None:
    """No progress is shown."""
    assert module
    assert more >= 0


@pytest.mark.parametrize("module", ATTACKS)
def test_a_reduced_attack_breaks_no_promise(module: str, tmp_path: Path) -> None:
    """The attack of `make evidence` at its reduced size, in a process of its own."""
    attack = load(module)
    piece = Piece(module, 0, attack.REDUCED, 7)
    outcome, _ = run_piece(piece, tmp_path / "result.json", nothing)
    assert outcome.failures == ()
    assert outcome.tried >= attack.REDUCED


def test_every_attack_names_stated_promises() -> None:
    """Names, sizes and promises of the attacks; every file of the folder that attacks is listed."""
    page_of_promises = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    stated = set(re.findall(r"^\| (G-[A-Z-]+) ", page_of_promises, re.MULTILINE))
    for module in ATTACKS:
        attack = load(module)
        assert attack.PROMISES, module
        assert set(attack.PROMISES) <= stated, module
        assert 0 < attack.REDUCED <= attack.FULL, module
        assert attack.__doc__, module
    assert len({load(module).NAME for module in ATTACKS}) == len(ATTACKS)
    files = Path(__file__).parent.glob("*.py")
    assert {path.stem for path in files if "\nPROMISES = " in path.read_text()} == set(ATTACKS)


def test_parts_are_the_whole() -> None:
    """Sizes add up, no seed comes twice, small runs are not cut."""
    for module in ATTACKS:
        attack = load(module)
        cut = pieces(module, attack.FULL, 3)
        assert sum(piece.size for piece in cut) == attack.FULL
        assert len({piece.seed for piece in cut}) == len(cut)
        assert len(pieces(module, attack.REDUCED, 3)) == 1


def test_a_part_that_dies_is_a_failure_and_is_run_again(tmp_path: Path) -> None:
    """No outcome is not a good outcome, and nothing is kept of it."""
    result = tmp_path / "result.json"
    outcome, _ = run_piece(Piece("no_such_attack", 0, 1, 1), result, nothing)
    assert outcome.tried == 0
    assert "no_such_attack" in outcome.failures[0]
    assert not result.exists()


def test_outcomes_of_parts_are_one() -> None:
    """Attempts and counts are added, equal notes kept once, and of the largest numbers the most."""
    found = together(
        [
            Outcome(2, notes=("a",), counts={"x": 1}, most={"y": 1.0}),
            Outcome(3, ("bad",), ("a", "b"), {"x": 2, "z": 5}, {"y": 0.5, "w": -1.0}),
        ]
    )
    assert found == Outcome(5, ("bad",), ("a", "b"), {"x": 3, "z": 5}, {"y": 1.0, "w": -1.0})


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    """A stopped run goes on with the parts that are missing."""
    result = tmp_path / "result.json"
    result.write_text(
        json.dumps(
            {"tried": 5, "failures": ["x"], "notes": [], "counts": {}, "most": {}, "seconds": 2.0}
        ),
        encoding="utf-8",
    )
    found = run_piece(Piece("no_such_attack", 0, 1, 1), result, nothing)
    assert found == (Outcome(5, ("x",)), 2.0)


def test_the_page_says_what_was_found() -> None:
    """Failures are counted in bold and listed; without any it says so."""
    of = Circumstances("make evidence", "2000-01-01", "abc", 1, 1.0, 2, 3.0)
    bad = page([Ran(ATTACKS[0], together([Outcome(3, ("broken so",))]), 1.0, "abc")], of)
    assert "**Promises were broken 1 times.**" in bad
    assert "- broken so" in bad
    good = page([Ran(ATTACKS[0], Outcome(3), 1.0, "abc")], of)
    assert "No promise was broken." in good
    assert "Failures:" not in good
    assert "another commit" not in good
    other = page([Ran(ATTACKS[0], Outcome(3), 1.0, "0123456789")], of)
    assert "Attacks of another commit" in other
    assert "| `0123456` | 3 " in other


def test_what_an_earlier_commit_finished_is_taken_whole(tmp_path: Path) -> None:
    """All of its parts, and none that is half done."""
    part = {"notes": [], "counts": {}, "most": {}, "seconds": 2.0}
    for at in range(4):
        told = part | {"tried": 10, "failures": ["broken"] if at == 1 else []}
        (tmp_path / f"kills-{at}-10-1000{at}.json").write_text(json.dumps(told))
    found = finished("kills", 40, tmp_path)
    assert (found.outcome.tried, found.outcome.failures) == (40, ("broken",))
    assert (found.seconds, found.code) == (8.0, tmp_path.name)
    with pytest.raises(FileNotFoundError, match="40 of 41 attempts"):
        finished("kills", 41, tmp_path)
    (tmp_path / "kills-3-10-10003.json").unlink()
    with pytest.raises(FileNotFoundError):
        finished("kills", 30, tmp_path)


def test_the_first_commit_that_finished_an_attack_is_taken(tmp_path: Path) -> None:
    """In the order in which commits are given, however many there are."""
    part = {"tried": 250, "failures": [], "notes": [], "counts": {}, "most": {}, "seconds": 2.0}
    folders = [tmp_path / name for name in ("new", "old", "older")]

    def write(folder: Path) -> None:
        for at in range(4):
            (folder / f"kills-{at}-250-1000{at}.json").write_text(json.dumps(part))

    for folder in folders:
        folder.mkdir()
    for folder in folders[1:]:
        write(folder)
    assert _first("kills", 1.0, folders).code == "old"
    write(folders[0])
    assert _first("kills", 1.0, folders).code == "new"
    with pytest.raises(FileNotFoundError):
        _first("orders", 1.0, folders)


def test_the_code_of_a_run_is_known() -> None:
    """A commit, or a digest of what is not committed."""
    assert re.fullmatch(r"[0-9a-f]{40}(\+[0-9a-f]{8})?|\+[0-9a-f]{8}", running.code())
