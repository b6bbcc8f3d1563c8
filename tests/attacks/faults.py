"""`python -m tests.attacks.faults [TEXT]`: seed the faults of `faults.toml`, one by one.

Each is a change of one place of the library; one of the tests that it names must fail. TEXT chooses
those with it in their name. A fault whose original text is not in the source exactly once is stale.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 300


@dataclass(frozen=True)
class Fault:
    """A change of one place: file under src/shoal, text and replacement, and who must notice."""

    name: str
    file: str
    original: str
    replacement: str
    tests: tuple[str, ...]
    inside: str = ""

    def seeded(self, source: str) -> str:
        """The source with the fault in it."""
        lines = source.splitlines(keepends=True)
        start, stop = 0, len(source)
        if self.inside:
            node: ast.AST = ast.parse(source)
            for part in self.inside.split("."):
                node = next(
                    each
                    for each in ast.iter_child_nodes(node)
                    if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == part
                )
            assert isinstance(node, ast.FunctionDef | ast.ClassDef)
            start = sum(map(len, lines[: node.lineno - 1]))
            stop = sum(map(len, lines[: node.end_lineno]))
        if source.count(self.original, start, stop) != 1:
            raise LookupError("stale: its original text is not there exactly once")
        at = source.index(self.original, start, stop)
        return source[:at] + self.replacement + source[at + len(self.original) :]


def faults() -> list[Fault]:
    """Those of the table."""
    table = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))
    return [
        Fault(name, *row["change"], tuple(row["tests"]), row.get("inside", ""))
        for name, row in table.items()
    ]


def fate(fault: Fault, tests: tuple[str, ...] = ()) -> str:
    """Which test failed on a copy of the library with the fault, or why none did."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "shoal"
        shutil.copytree(ROOT / "src/shoal", copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / fault.file
        try:
            path.write_text(fault.seeded(path.read_text(encoding="utf-8")), encoding="utf-8")
        except (LookupError, StopIteration, FileNotFoundError) as stale:
            return f"SURVIVED {stale}"
        around = {**os.environ, "PYTHONPATH": folder, "PYTHONPYCACHEPREFIX": f"{folder}/cache"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *(tests or fault.tests)],
                cwd=ROOT, env=around, capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "SURVIVED no answer in time"
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0] if done.returncode == 1 and failed else "SURVIVED all tests pass"


def main(arguments: list[str]) -> int:
    """Prints the fate of each fault; 1 if one survived."""
    survivors = 0
    for fault in faults():
        if not all(word in fault.name for word in arguments):
            continue
        begin = time.monotonic()
        found = fate(fault)
        survivors += found.startswith("SURVIVED")
        print(f"{time.monotonic() - begin:5.0f} s  {fault.name}: {found}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
