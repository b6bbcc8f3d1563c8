"""Write the golden files from a checkout of f03af12, or renew some kinds of them on purpose.

    PYTHONPATH=src:. python -m tests.golden.make [kind ...]

The first files were made with `src` of a checkout of commit f03af12. A kind that has a file keeps
its requests: their results are made anew. To renew a kind after a difference that is wanted, name
it, and put the figures that this prints into the commit's message.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING

from tests.golden import cell_requests, files
from tests.golden.adapter import answer
from tests.golden.compare import differences, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

# How many pairs of each kind, and how many of them may be refusals.
SIZES = {"cells": 200, "flights": 20, "trials": 40, "means": 20, "releases": 50}
_REFUSED = 5
REQUESTS = {"cells": cell_requests.requests}


def new_pairs(kind: str) -> Iterator[files.Pair]:
    """Pairs of a new request and its result; few of the results are refusals."""
    refused = 0
    for request in REQUESTS[kind]():
        result = answer(kind, request)
        refused += "refused" in result
        if "refused" not in result or refused <= _REFUSED:
            yield {"request": request, "result": result}


def renewed(kind: str, pairs: list[files.Pair]) -> Iterator[files.Pair]:
    """The same requests with today's results; prints what differs."""
    for at, pair in enumerate(pairs):
        result = answer(kind, pair["request"])
        for each in differences(kind, pair["request"], pair["result"], result):
            sys.stdout.write(f"{kind} {at}: {shown(each)}\n")
        yield {"request": pair["request"], "result": result}


def main(kinds: list[str]) -> None:
    """Write the files of these kinds, of all if none is named."""
    for kind in kinds or files.KINDS:
        before = files.read(kind)
        pairs = renewed(kind, before) if before else islice(new_pairs(kind), SIZES[kind])
        after = list(pairs)
        size = files.write(kind, after)
        sys.stdout.write(f"{kind}: {len(after)} requests, {size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
