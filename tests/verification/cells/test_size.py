"""What a second opinion costs: time and memory in proportion to the document, whatever it says."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import documents
from shoal.errors import DocumentError
from shoal.verification.cells.losses import _largest_sum
from tests.support import methods

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

LIST = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40)
COSTS = st.lists(st.integers(0, 2**130), min_size=3, max_size=3)


@given(LIST, COSTS)
def test_the_largest_sum_is_exact(members: list[tuple[int, int]], cost: list[int]) -> None:
    """G-VERIFY: whoever loses most is found by digits, as by adding up one after the other."""
    user, kind = np.array(sorted(members)).T
    lost: dict[int, int] = {}
    for one, at in zip(user.tolist(), kind.tolist(), strict=True):
        lost[one] = lost.get(one, 0) + cost[at]
    assert _largest_sum(cost, kind, user) == max(lost.values())


def test_carries_decide_who_loses_most() -> None:
    """G-VERIFY: many small losses carry over into digits that a single large one has not."""
    cost, user = [2**30 - 1, 2**30], np.array([0, 0, 0, 1, 1])
    assert _largest_sum(cost, np.array([0, 0, 0, 1, 1]), user) == 3 * (2**30 - 1)


def _repeated(size: int, value: int) -> documents.Document:
    """A long column of one number, deflated as tightly as can be."""
    raw = np.full(size, value, dtype="<u1").tobytes()
    data = base64.b64encode(zlib.compress(raw, level=9)).decode()
    return {"type": "<u1", "length": size, "data": data}


@pytest.fixture
def manifest(tmp_path: Path) -> dict[str, Any]:
    """Of one cell."""
    table = methods.tied(cells=1)
    book = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    made = methods.plan(table, {"method": "equalised"})
    found: dict[str, Any] = json.loads(
        made.release(methods.records(table), ledger=book, name="may").document
    )
    return found


def test_a_small_manifest_of_millions_of_users_is_refused(manifest: dict[str, Any]) -> None:
    """G-FUZZ: a few kilobytes cannot tell of more users than they have room for."""
    occupancy = manifest["plan"]["occupancy"]
    for name, value in (("cells_per_user", 1), ("cell", 0), ("count", 1)):
        occupancy[name] = _repeated(2**22, value)
    assert len(documents.canonical_bytes(manifest)) < 2**16
    with pytest.raises(DocumentError, match="damaged"):
        shoal.verify(manifest)


MEASURE = """
import resource, sys
import shoal
before = resource.getrusage(resource.RUSAGE_SELF)
print(shoal.verify(sys.argv[1]).checks[0].holds)
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_maxrss - before.ru_maxrss, after.ru_utime - before.ru_utime)
"""


def test_a_manifest_of_a_million_users_is_judged_in_their_proportion(
    manifest: dict[str, Any], tmp_path: Path
) -> None:
    """G-FUZZ: a million users take a few seconds and less than 512 MB, and no object each."""
    occupancy, users = manifest["plan"]["occupancy"], 2**20
    for name, value in (("cells_per_user", 1), ("cell", 0), ("count", 1)):
        occupancy[name] = documents.pack_integers(np.full(users, value))
    path = tmp_path / "large.json"
    path.write_bytes(documents.canonical_bytes(manifest))
    assert path.stat().st_size > users / 3
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    holds, kilobytes, seconds = done.stdout.split()
    # Nobody loses what users of so few records would: the noise is far more than is needed.
    assert holds == "False"
    assert int(kilobytes) < 2**19
    assert float(seconds) < 30
