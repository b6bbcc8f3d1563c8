"""Write the golden files from a checkout of f03af12, or renew some kinds of them on purpose.

    PYTHONPATH=src:. python -m tests.golden.make [kind ...]

The first files were made with `src` of a checkout of commit f03af12. A kind that has a file keeps
its requests and drawn numbers: their results are made anew. To renew a kind after a difference that
is wanted, name it, and put the figures that this prints into the commit's message.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from tests.golden import cell_requests, trial_requests
from tests.golden.adapter import answer
from tests.golden.compare import KINDS, differences, place, read, shown
from tests.golden.flight_requests import REQUESTS as FLIGHTS

Plain = dict[str, Any]
Kind = tuple[str, int]

_SIZES = {"cells": 200, "flights": 20, "trials": 40, "means": 20, "releases": 50}
# How many of a kind may be requests that are refused.
_REFUSED = 5
_REQUESTS: dict[str, tuple[Any, int]] = {
    "cells": (cell_requests.request, len(cell_requests.ASKED)),
    "trials": (trial_requests.trial, len(trial_requests.TRIALS)),
    "means": (trial_requests.mean, len(trial_requests.MEANS)),
}
# Which kinds of requests are released, by their places: cells of all methods, of single and joint
# statistics, with Gaussian noise and two rounds; mechanisms and questions of trials; means.
_RELEASED: tuple[Kind, ...] = (
    *(("cells", at) for at in (1, 0, 2, 3, 4, 10, 11, 14, 15, 17, 22, 18, 20, 21, 23, 24, 26, 28)),
    *(("cells", at) for at in (32, 33, 43, 35, 36, 39, 40, 41, 42, 44, 45, 46)),
    *(("trials", at) for at in (9, 0, 1, 2, 3, 5, 6, 7, 10, 11)),
    *(("means", at) for at in (1, 0, 2, 3, 4, 5, 6, 0, 1, 3)),
)
# Released with 40 cells: from 30 on, intervals of users' vectors follow from all cells together.
_WIDE = {("cells", 43), ("cells", 45)}


def requests(kind: str) -> Iterator[Plain]:
    """Requests of a kind, in an order in which each tenth is mixed."""
    rng = np.random.default_rng([32, KINDS.index(kind)])
    if kind == "flights":
        yield from FLIGHTS
    elif kind == "releases":
        for at in range(len(_RELEASED)):
            yield release(rng, *_RELEASED[23 * at % len(_RELEASED)])
    else:
        yield from (_REQUESTS[kind][0](rng, at) for at in count())


def release(rng: np.random.Generator, kind: str, which: int) -> Plain:
    """A request of a kind with the whole numbers that a simulated release of it draws."""
    made, kinds = _REQUESTS[kind]
    # Another turn, with other counts and another loss, where a request is refused.
    for turn in count():
        wide = {"wide": 40} if (kind, which) in _WIDE else {}
        asked = made(rng, which + turn * kinds, **wide)
        drawn = answer(kind, asked, seed=which + turn)
        if not drawn.keys() & {"refused", "failed"}:
            break
    return {"tolerance": cell_requests.SOLVED, "kind": kind, "asked": asked, "drawn": drawn}


def new_pairs(kind: str) -> Iterator[Plain]:
    """Pairs of a new request and its result; few of the results are refusals."""
    refused = 0
    for request in requests(kind):
        result = answer(kind, request)
        refused += "refused" in result
        if "refused" not in result or refused <= _REFUSED:
            yield {"request": request, "result": result}


def renewed(kind: str) -> Iterator[Plain]:
    """The same requests with today's results; prints what differs."""
    for at, pair in enumerate(read(kind)):
        result = answer(kind, pair["request"])
        for each in differences(pair["request"], pair["result"], result):
            sys.stdout.write(f"{kind} {at}: {shown(each)}\n")
        yield {"request": pair["request"], "result": result}


def main(kinds: list[str]) -> None:
    """Write the files of these kinds, of all if none is named."""
    for kind in kinds or KINDS:
        pairs = renewed(kind) if place(kind).exists() else islice(new_pairs(kind), _SIZES[kind])
        lines = [json.dumps(each, separators=(",", ":"), allow_nan=False) for each in pairs]
        text = "[" + ",\n".join(lines) + "]\n"
        place(kind).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        sys.stdout.write(f"{kind}: {len(lines)} requests, {place(kind).stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
