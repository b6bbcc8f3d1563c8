"""The fuzzers see what they look for, and start from sound calls."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import shoal
from tests.evidence import fuzz_api, fuzz_cli, fuzz_cli_stage, tiny
from tests.evidence.fuzz_kit import Kit
from tests.evidence.fuzz_targets import TARGETS, Target, missing, touch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.audit


def test_every_public_call_is_fuzzed() -> None:
    """G-FUZZ: a public function or class without a target is found."""
    assert missing() == []


def test_what_calls_start_from_is_sound(tmp_path: Path) -> None:
    """Sound arguments are taken: what the fuzzer spoils is not refused for another reason."""
    kit = Kit(tmp_path)
    unsound = []
    for target in random.Random(3).sample(TARGETS, len(TARGETS)):  # noqa: S311
        try:
            touch(target.find(kit)(**target.arguments(kit)))
        except shoal.ShoalError as error:
            unsound.append((target.name, str(error)))
    # These read what others write.
    assert {name for name, _ in unsound} <= {
        "Plan.load", "Occupancy.load", "UnbiasedPlan.load", "PrivateTrial.load",
        "QuestionsPlan.load", "PrivateAnswers.load",
    }, unsound  # fmt: skip


@pytest.mark.parametrize(
    "failing",
    [
        lambda **_: 1 / 0,
        lambda **_: int("a"),
        lambda **_: (_ for _ in ()).throw(shoal.ShoalError("canary-of-fuzz", "b", "c")),
    ],
)
def test_a_wrong_error_is_seen(tmp_path: Path, failing: object) -> None:
    """The fuzzer itself: what is not ours, and what holds a private word, is a failure."""
    kit = Kit(tmp_path)
    target = Target("x", lambda _: failing)  # type: ignore[arg-type,return-value]
    assert fuzz_api._call(target, kit, {}, secret=True) not in ("", "refused")


_SECRET = ["release", "--value", "secret"]


@pytest.mark.parametrize(
    ("words", "answer", "changed"),
    [
        (_SECRET, ("ValueError at x.py:1", "", ""), ""),
        (_SECRET, (2, "", "shoal: a.\nshoal: b.\n"), ""),
        (_SECRET, (2, "", "shoal: " + "x" * 3000), ""),
        (_SECRET, (2, "", "shoal: 7391.254817 is not allowed.\n"), ""),
        (_SECRET, (2, "", "shoal: unexpected KeyError; please report it.\n"), ""),
        (_SECRET, (2, "a table", "shoal: no.\n"), ""),
        (_SECRET, (2, "", "shoal: no.\n"), "a.ledger"),
        (_SECRET, (2, "", ""), ""),
        (_SECRET, (1, "no", ""), ""),
        (_SECRET, (0, "7391.254817", ""), ""),
        (_SECRET, (0, "", "a warning\n"), ""),
        (_SECRET, (139, "", ""), ""),
    ],
)
def test_a_wrong_answer_of_a_command_is_seen(
    words: list[str], answer: tuple[int | str, str, str], changed: str
) -> None:
    """The fuzzer of the command line: each promise that a made-up answer breaks is a failure."""
    assert fuzz_cli.judge(words, fuzz_cli.Answer(*answer), changed)


def test_a_right_answer_of_a_command_is_none() -> None:
    """A refusal in one line, a verdict of no, a success that changes files."""
    right = [(2, "", "shoal: no; do this.\n"), (1, "no", ""), (0, "yes", "")]
    changes = ["", "", "new.csv"]
    for answer, changed in zip(right, changes, strict=True):
        assert fuzz_cli.judge(["verify"], fuzz_cli.Answer(*answer), changed) == ""


def test_what_a_command_left_is_seen_and_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new, a replaced and a lost file are named, and every case starts from the same folder."""
    stage = fuzz_cli_stage.Stage(tmp_path / "stage")
    monkeypatch.chdir(stage.folder)
    assert stage.changed() == ""
    answer = fuzz_cli.in_process(
        [
            "release",
            "a.csv",
            "plan.json",
            "--ledger",
            "a.ledger",
            "--name",
            "n",
            "--output",
            "n.csv",
        ]
    )
    assert answer.status == 0, answer
    (stage.folder / "loop.csv").unlink()
    assert stage.changed() == "a.ledger, loop.csv, n.csv"
    stage.restore()
    assert stage.changed() == ""


@pytest.mark.parametrize("users", [1, 2, 3])
@pytest.mark.parametrize("targets", ["equal", "balanced"])
@pytest.mark.parametrize("epsilon", ["1/1000", 1, 50])
def test_optimal_plans_of_few_users_in_a_selected_range(
    tmp_path: Path, users: int, targets: str, epsilon: str | int
) -> None:
    """G-FUZZ: where nobody counts no range is found, and the plan is carried out all the same."""
    wanted = {
        "method": "optimal", "epsilon": epsilon, "uninformative": "keep",
        "settings": {"range": "selected", "targets": targets},
    }  # fmt: skip
    assert tiny.attempt(((1, 2),) * users, wanted, tmp_path) == ""
