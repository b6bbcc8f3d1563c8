"""`make faults`: seed every fault, or those whose name, file or promise holds a text."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.evidence.seeded.catalogue import FAULTS
from tests.evidence.seeded.runner import tried


def main(wanted: list[str]) -> int:
    """Print the fate of each fault as it is known, then a count; 1 if any fault survived."""
    chosen = [
        fault
        for fault in FAULTS
        if not wanted
        or any(text in f"{fault.name} {fault.file} {fault.promise}" for text in wanted)
    ]
    begin, survived = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for at, fate in enumerate(tried(chosen, Path(folder)), start=1):
            survived += not fate.killed
            print(f"{at:4}/{len(chosen)} {fate}", flush=True)  # noqa: T201  a table for user_values
    minutes = (time.monotonic() - begin) / 60
    print(f"{len(chosen)} faults, {survived} survived, {minutes:.1f} minutes")  # noqa: T201
    return int(survived > 0)


sys.exit(main(sys.argv[1:]))
