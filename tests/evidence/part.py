"""One piece of one attack, in a process of its own: `python -m tests.evidence.part MODULE ...`.

A process of its own may fork, be slow to end, or crash, without harm to the run it belongs to.
Standard output carries the progress, one whole number a line; the outcome goes to a file.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from tests.evidence.finding import Attack

_EVERY = 0.5  # seconds between two lines of progress


def load(module: str) -> Attack:
    """The attack in a module of this folder."""
    return cast("Attack", importlib.import_module(f"tests.evidence.{module}"))


class _Reporter:
    """Prints how many more were tried, now and then."""

    def __init__(self) -> None:
        self.waiting, self.last = 0, time.monotonic()

    def __call__(self, more: int) -> None:
        self.waiting += more
        if time.monotonic() - self.last >= _EVERY:
            self.flush()

    def flush(self) -> None:
        print(self.waiting, flush=True)  # noqa: T201
        self.waiting, self.last = 0, time.monotonic()


def main(module: str, size: int, seed: int, result: Path) -> None:
    """Run it and write its outcome, with the seconds it took."""
    attack, progress, begun = load(module), _Reporter(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="shoal-evidence-") as folder:
        outcome = attack.run(size, seed=seed, folder=Path(folder), progress=progress)
    progress.flush()
    if outcome.tried < size:
        short = f"only {outcome.tried} of {size} {attack.UNIT} were tried"
        outcome = replace(outcome, failures=(*outcome.failures, short))
    facts = {**asdict(outcome), "seconds": time.perf_counter() - begun}
    result.write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
