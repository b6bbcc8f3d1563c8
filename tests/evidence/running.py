"""Attacks at any size: cut into parts, two at a time, resumable."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.evidence.finding import Outcome, together
from tests.evidence.part import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Advance = Callable[[str, int], None]

ROOT = Path(__file__).parents[2]
# What decides how an attack ends: pages and notes may change.
_CODE = ("src", "tests", "pyproject.toml", "requirements.lock")
_TAIL = 2000


@dataclass(frozen=True)
class Piece:
    """A part of an attack.

    Attributes:
        module: The attack's module.
        number: Which part.
        size: How many attempts.
        seed: Its own seed.
    """

    module: str
    number: int
    size: int
    seed: int


@dataclass(frozen=True)
class Ran:
    """What an attack found, and how long it took.

    Attributes:
        module: The attack's module.
        outcome: Of all parts together.
        seconds: Of all parts, one after the other.
        code: The commit of the code that it attacked.
    """

    module: str
    outcome: Outcome
    seconds: float
    code: str


def pieces(module: str, size: int, seed: int) -> list[Piece]:
    """An attack cut into its parts, each at least as large as its reduced run."""
    attack = load(module)
    most = max(1, size // attack.REDUCED)
    parts = min(getattr(attack, "PARTS", 1), most)
    edges = [size * at // parts for at in range(parts + 1)]
    return [Piece(module, at, edges[at + 1] - edges[at], 10_000 * seed + at) for at in range(parts)]


def run_piece(piece: Piece, result: Path, advance: Advance) -> tuple[Outcome, float]:
    """Run a part in a process of its own; one that dies or leaves no outcome has failed.

    Args:
        piece: Which.
        result: The file of its outcome; if it is there, it is taken instead.
        advance: Called with the module and how many more were tried.
    """
    if not result.exists():
        result.parent.mkdir(parents=True, exist_ok=True)
        draft, log = result.with_suffix(".new"), result.with_suffix(".log")
        draft.unlink(missing_ok=True)
        facts = map(str, (piece.module, piece.size, piece.seed, draft))
        command = [sys.executable, "-m", "tests.evidence.part", *facts]
        with (
            log.open("w+", encoding="utf-8") as errors,
            subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as child,
        ):
            for line in child.stdout or ():
                if line.strip().isdigit():
                    advance(piece.module, int(line))
            status = child.wait()
            errors.seek(0)
            said = errors.read()[-_TAIL:]
        if status != 0 or not draft.exists():
            return Outcome(0, (f"part {piece.number} ended with {status}: {said}",)), 0.0
        draft.rename(result)
    else:
        advance(piece.module, piece.size)
    return _read(result)


def _read(result: Path) -> tuple[Outcome, float]:
    found = json.loads(result.read_text(encoding="utf-8"))
    outcome = Outcome(
        found["tried"],
        tuple(found["failures"]),
        tuple(found["notes"]),
        found["counts"],
        found["most"],
    )
    return outcome, found["seconds"]


def finished(module: str, size: int, folder: Path) -> Ran:
    """An attack of which another commit has finished all parts, with so many attempts or more.

    Args:
        module: The attack's.
        size: How many attempts that commit had to make at the least.
        folder: Of the parts that the commit has finished.

    Raises:
        FileNotFoundError: There are fewer.
    """
    parts = [_read(each) for each in sorted(folder.glob(f"{module}-[0-9]*.json"))]
    whole = together(outcome for outcome, _ in parts)
    if whole.tried < size or len(parts) < getattr(load(module), "PARTS", 1):
        raise FileNotFoundError(f"{whole.tried} of {size} attempts of {module} in {folder.name}")
    return Ran(module, whole, sum(seconds for _, seconds in parts), folder.name)


def run(
    sizes: dict[str, int], *, seed: int, results: Path, workers: int, advance: Advance
) -> list[Ran]:
    """Run attacks; what an earlier run on the same code has finished is not run again.

    Args:
        sizes: How many attempts of each module.
        seed: Of all parts.
        results: Folder of finished parts, which has the name of the code's commit.
        workers: Parts at a time.
        advance: Called with a module and how many more were tried.
    """
    every = [piece for module, size in sizes.items() for piece in pieces(module, size, seed)]

    def work(piece: Piece) -> tuple[Outcome, float]:
        name = f"{piece.module}-{piece.number}-{piece.size}-{piece.seed}.json"
        return run_piece(piece, results / name, advance)

    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(work, every))
    ran = []
    for module in sizes:
        mine = [each for piece, each in zip(every, found, strict=True) if piece.module == module]
        seconds = sum(each[1] for each in mine)
        whole = together(each[0] for each in mine)
        ran.append(Ran(module, whole, seconds, results.name))
    return ran


def code() -> str:
    """The newest commit that changed code, with a digest of what is not committed, if anything."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words],  # noqa: S607
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else ""

    commit = git("log", "-1", "--format=%H", "--", *_CODE).strip()
    changed = git("diff", "HEAD", "--", *_CODE)
    new: Sequence[str] = git("ls-files", "--others", "--exclude-standard", *_CODE).split("\n")
    for name in filter(None, new):
        changed += name + (ROOT / name).read_bytes().hex()
    if changed or not commit:
        commit += f"+{hashlib.sha256(changed.encode()).hexdigest()[:8]}"
    return commit
