"""Compare everything with the golden files: `python -m tests.golden [kind ...]`."""

from __future__ import annotations

import sys
import time

from tests.golden import files
from tests.golden.compare import compare, shown

# Differences of a kind that are printed.
_SHOWN = 40


def main(kinds: list[str]) -> int:
    """Print every difference; 1 if there is one."""
    wrong = 0
    for kind in kinds or files.KINDS:
        start, noticed, found = time.process_time(), set(), 0
        for at, difference in compare(kind):
            noticed.add(at)
            found += 1
            if found <= _SHOWN:
                sys.stdout.write(f"{kind} {at}: {shown(difference)}\n")
        took = time.process_time() - start
        which = f" in requests {', '.join(map(str, sorted(noticed)))}" if noticed else ""
        said = f"{kind}: {found} differences{which}; {took:.0f} s of processor time"
        sys.stdout.write(said + "\n")
        wrong += found
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
