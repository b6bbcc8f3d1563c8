"""Hostile command lines and files: one line, status 0, 1 or 2, and a refusal changes nothing.

python -m tests.evidence.fuzz_cli 300 --seed 7           # a run
python -m tests.evidence.fuzz_cli --case 123 --seed 7    # one case again
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from shoal.cli.main import main as shoal_main
from tests.evidence.finding import Outcome
from tests.evidence.fuzz_cli_stage import CANARIES, CANARY, PRIVATE, Stage
from tests.evidence.fuzz_cli_words import SPOILED, arguments, spoiled
from tests.evidence.fuzz_rails import TooSlowError, main, rails

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.evidence.finding import Progress

NAME = "hostile command lines and files"
PROMISES = ("G-FUZZ", "G-REFUSE", "G-CANARY", "G-OUTPUTS")
UNIT = "command lines"
FULL, REDUCED = 20_000, 300
PARTS = 10
# Every so many cases is a process of its own.
_OWN = 250
_SECONDS, _MOST_SECONDS = 60, 240
_QUESTION = "was recorded in the ledger"
_LONGEST = 2400
_ENDINGS = {".csv": "a.csv", ".parquet": "a.parquet", ".ledger": "a.ledger", ".png": "old.png"}
_DOCUMENTS = ("plan.json", "manifest.json", "trial.json", "mean.json", "mean-plan.json")


@dataclass(frozen=True)
class Answer:
    """What a command came to: its status, or what it raised, and what it printed."""

    status: int | str
    out: str
    err: str


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """That many command lines, each with one to three things wrong."""
    stage = Stage(folder / "stage")
    failures, counts = [], Counter[str]()
    with rails(stage.folder):
        for number in range(size):
            words, answer, wrong = case(stage, seed, number)
            counts[f"status {answer.status}"] += 1
            if wrong:
                failures.append(f"seed {seed} case {number}: {_shown(words)}: {wrong}")
            progress(1)
    return Outcome(size, tuple(failures), counts=dict(counts))


def case(stage: Stage, seed: int, number: int) -> tuple[list[str], Answer, str]:
    """One command line, what it came to, and what it broke, if anything."""
    dice = random.Random(f"{seed} {number}")  # noqa: S311
    words = arguments(dice)
    extra = [word for word in words if word.startswith(f"{SPOILED}.")]
    for name in extra:
        model = _ENDINGS.get(Path(name).suffix) or dice.choice(_DOCUMENTS)
        stage.add(name, spoiled(stage.state[model][1], dice))
    process = number % _OWN == 0 and _fit_for_a_process(words)
    try:
        answer = _process(words) if process else in_process(words)
        wrong = judge(words, answer, stage.changed())
    finally:
        stage.restore()
        for name in extra:
            stage.remove(name)
    return words, answer, wrong


def in_process(words: Sequence[str]) -> Answer:
    """In this process, with everything that reaches standard output and error, by C++ too."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        kept = _redirect(out, err)
        # A command that waits in C hears no alarm: then this process ends.
        faulthandler.dump_traceback_later(_MOST_SECONDS, exit=True, file=kept[1])
        signal.alarm(_SECONDS)
        status: int | str
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                # Python itself shows these to nobody.
                warnings.simplefilter("ignore", DeprecationWarning)
                warnings.simplefilter("ignore", ResourceWarning)
                status = shoal_main(list(words))
        except TooSlowError:
            status = f"took longer than {_SECONDS} s"
        except BaseException as error:  # noqa: BLE001
            place = traceback.extract_tb(error.__traceback__)[-1]
            status = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        finally:
            signal.alarm(0)
            faulthandler.cancel_dump_traceback_later()
            _give_back(*kept)
        return Answer(status, _read(out), _read(err))


def judge(words: Sequence[str], answer: Answer, changed: str) -> str:
    """What a command broke, or nothing."""
    if not isinstance(answer.status, int):
        return answer.status
    refused = answer.status != 0 and not (answer.status == 1 and words[:1] == ["verify"])
    if answer.status not in (0, 2) and refused:
        return f"status {answer.status}"
    told = answer.out + answer.err
    # A noisy number may begin like a canary.
    canaries = CANARIES if refused else (str(CANARY), *CANARIES[1:])
    if _secret(words) and any(word in told for word in canaries):
        return "a private value"
    if not refused:
        wrong = [line for line in answer.err.splitlines() if not _asks(line)]
        return f"a success that complains: {answer.err[:200]!a}" if wrong else ""
    if answer.err.startswith("shoal: unexpected ") and "please report" in answer.err:
        return f"not foreseen: {answer.err[:200]!a}"
    line = answer.err.removesuffix("\n")
    if not line.startswith("shoal: ") or len(line) > _LONGEST or not line.isprintable():
        return f"not one short line but {len(line)} characters: {line[:200]!a}"
    if answer.out:
        return f"a refusal that prints: {answer.out[:100]!a}"
    return f"a refusal that changed {changed}" if changed else ""


def _asks(line: str) -> bool:
    """Whether a line of what succeeded is the one question that it may leave."""
    asked = line.startswith("shoal: ") and _QUESTION in line
    return asked and len(line) <= _LONGEST and line.isprintable()


def _secret(words: Sequence[str]) -> bool:
    """Whether the private column has no public role: what is public may be shown."""
    roles = ("--value", "--outcome")
    pairs = zip(["", *words], words, strict=False)
    return not any(PRIVATE in word.lower() and before not in roles for before, word in pairs)


def _fit_for_a_process(words: Sequence[str]) -> bool:
    try:
        return all(b"\0" not in os.fsencode(word) and len(word) < 10**5 for word in words)
    except UnicodeEncodeError:
        return False


def _process(words: Sequence[str]) -> Answer:
    command = [sys.executable, "-m", "shoal", *words]
    source = str(Path(sys.modules["shoal"].__file__ or "").parents[1])
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=_MOST_SECONDS, env={**os.environ, "PYTHONPATH": source},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Answer(f"took longer than {_MOST_SECONDS} s", "", "")
    told = (text.decode(errors="backslashreplace") for text in (done.stdout, done.stderr))
    return Answer(done.returncode, *told)


def _redirect(out: IO[bytes], err: IO[bytes]) -> tuple[int, int, object, object]:
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2), sys.stdout, sys.stderr
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    # Such as `shoal.cli.streams` makes them for a process.
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    return kept


def _give_back(out: int, err: int, stdout: object, stderr: object) -> None:
    sys.stdout.close()
    sys.stderr.close()
    sys.stdout, sys.stderr = stdout, stderr
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="backslashreplace")


def _shown(words: Sequence[str]) -> str:
    return " ".join(f"{word[:60]!a}" for word in words)


def _again(folder: Path, seed: int, number: int) -> None:
    stage = Stage(folder / "stage")
    with rails(stage.folder):
        words, answer, wrong = case(stage, seed, number)
    sys.stdout.write(f"{_shown(words)}\n{answer}\n{wrong}\n")


if __name__ == "__main__":
    main(run, _again, lambda line: line.rsplit(": ", 1)[-1], REDUCED)
