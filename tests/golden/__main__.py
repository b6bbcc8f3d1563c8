"""Compare everything with the golden files: `python -m tests.golden [kind ...]`."""

import sys
import time

from tests.golden.compare import KINDS, compare, shown

# Differences of a kind that are printed.
_SHOWN = 40


def main(kinds: list[str]) -> int:
    """Print differences; 1 if there is one."""
    wrong = 0
    for kind in kinds or KINDS:
        start, found = time.process_time(), list(compare(kind))
        lines = [f"{kind} {at}: {shown(each)}" for at, each in found[:_SHOWN]]
        which = ", ".join(map(str, sorted({at for at, _ in found}))) or "none"
        took = f"{time.process_time() - start:.0f} s of processor time"
        lines.append(f"{kind}: {len(found)} differences; requests: {which}; {took}")
        sys.stdout.write("\n".join(lines) + "\n")
        wrong += len(found)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
