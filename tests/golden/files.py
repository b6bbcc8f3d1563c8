"""Golden files: compressed JSON with the same bytes whenever they hold the same."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
KINDS = ("cells", "flights", "trials", "means", "releases")

Pair = dict[str, Any]


def place(kind: str) -> Path:
    """Where the requests of a kind and their results are kept."""
    return FOLDER / f"{kind}.json.gz"


def read(kind: str) -> list[Pair]:
    """Pairs of a request and its result; none if there is no file yet."""
    path = place(kind)
    return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else []


def write(kind: str, pairs: list[Pair]) -> int:
    """Write pairs of a request and its result, one a line; returns the size in bytes."""
    lines = [json.dumps(each, separators=(",", ":"), allow_nan=False) for each in pairs]
    text = "[" + ",\n".join(lines) + "]\n"
    data = gzip.compress(text.encode(), 9, mtime=0)
    place(kind).write_bytes(data)
    return len(data)
