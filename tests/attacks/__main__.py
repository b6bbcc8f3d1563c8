"""`python -m tests.attacks [NAME ...] [--scale 0.1]`: try to break what shoal promises.

An attack is a module of this folder with its size, what the size counts, and

    def attack(size: int, seed: int, folder: Path) -> Iterator[str]: ...

which yields a line for each attempt that broke a promise: how to do it again, no private value.
"""

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ATTACKS = ("replay", "draws", "selections", "responses", "kills", "tiny")


def main(arguments: list[str]) -> int:
    """Runs the attacks and prints what each found; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks")
    parser.add_argument("attack", nargs="*", choices=[*ATTACKS, []], default=list(ATTACKS))
    parser.add_argument("--scale", type=float, default=1.0, help="part of each attack's size")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    broken = 0
    for name in options.attack:
        module: Any = importlib.import_module(f"tests.attacks.{name}")
        size, begin = max(1, round(module.SIZE * options.scale)), time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            failures = list(module.attack(size, options.seed, Path(folder)))
        seconds = time.monotonic() - begin
        print(f"{name}: {size:,} {module.UNIT}, {len(failures)} failures, {seconds:.0f} s")
        for line in failures[:50]:
            print(f"  {line}")
        broken += len(failures)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
