"""Runs tests against a copy of the library in which one fault was seeded."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.evidence.seeded.fault import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.evidence.seeded.fault import Fault

ROOT = LIBRARY.parents[1]
PATIENCE = 900.0
WORKERS = 2
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::\S.*?)(?: - (.*))?$", re.MULTILINE)
# A fault is to change what is computed: one that does not even run would be noticed by anything.
_BROKEN = (
    "NameError",
    "ImportError",
    "ModuleNotFoundError",
    "SyntaxError",
    "UnboundLocalError",
    "AttributeError",
)
_RAN_WITH_FAILURES = 1


@dataclass(frozen=True)
class Fate:
    """What became of one fault.

    Attributes:
        fault: Which.
        killer: The test that failed, or why none did.
        killed: Whether a test failed.
        seconds: How long that took.
    """

    fault: Fault
    killer: str
    killed: bool
    seconds: float

    def __str__(self) -> str:
        """One row of the table."""
        verdict = "killed" if self.killed else "SURVIVED"
        return f"{verdict:8} {self.seconds:6.1f} s  {self.fault.name}  [{self.killer}]"


def tried(faults: Sequence[Fault], folder: Path, workers: int = WORKERS) -> Iterator[Fate]:
    """The fate of each fault, in their order; each worker has a copy of the library of its own."""
    copies = deque(Copy(folder / str(number)) for number in range(workers))

    def one(fault: Fault) -> Fate:
        copy = copies.pop()
        try:
            return copy.fate(fault)
        finally:
            copies.append(copy)

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, faults)


class Copy:
    """A copy of the library in a folder of its own, into which faults are seeded one by one."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        shutil.copytree(LIBRARY, self.source / "shoal", ignore=shutil.ignore_patterns("*.pyc"))

    def fate(self, fault: Fault) -> Fate:
        """Seed a fault, run its tests up to the first failure, and take it out again."""
        begin = time.monotonic()
        with self._seeded(fault):
            code, text = self.pytest(fault.tests)
        seconds = time.monotonic() - begin
        failed = _FAILED.search(text)
        if code is None:
            return Fate(fault, "no answer in time", killed=False, seconds=seconds)
        if code == 0:
            return Fate(fault, "all tests pass", killed=False, seconds=seconds)
        if code != _RAN_WITH_FAILURES or failed is None:
            return Fate(fault, f"pytest ended with {code}", killed=False, seconds=seconds)
        if (failed[2] or "").startswith(_BROKEN):
            return Fate(fault, f"does not run: {failed[2]}", killed=False, seconds=seconds)
        return Fate(fault, failed[1], killed=True, seconds=seconds)

    def pytest(self, tests: tuple[str, ...]) -> tuple[int | None, str]:
        """Exit code of pytest on these tests with the copy, None if it took too long; its output.

        Raises:
            RuntimeError: Another library than the copy would be tested.
        """
        # Tests of their own examples: what was found in one run must be found in the next.
        surroundings = {**os.environ, "PYTHONPATH": str(self.source), "COLUMNS": "500"}
        surroundings.pop("SHOAL_PROVE", None)
        where = "import shoal; print(shoal.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", where],
            env=surroundings,
            capture_output=True,
            text=True,
            check=True,
        )
        if Path(found.stdout.strip()).parents[1] != self.source:
            raise RuntimeError(found.stdout)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as running:
            try:
                text, _ = running.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                return None, ""
            return running.returncode, text

    @contextmanager
    def _seeded(self, fault: Fault) -> Iterator[None]:
        path = self.source / "shoal" / fault.file
        original = path.read_text(encoding="utf-8")
        changed = fault.seeded(original)
        compile(changed, str(path), "exec")
        try:
            self._write(path, changed)
            yield
        finally:
            self._write(path, original)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Compiled code is known by the second and the size alone: two faults may share both.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
