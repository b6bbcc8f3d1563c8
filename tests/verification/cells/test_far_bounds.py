"""The second opinion where bounds lie far from 0 and close together, such as times since 1970."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from tests.support.verdicts import failed_claims, rekey

pytestmark = pytest.mark.audit

# Beginning, width and tick bits.
BOUNDS = [(1.7e9, 260.0, 20), (1e8, 1.0, 10), (-1e12, 3000.0, 10), (1e6, 1.0, 20), (0.0, 1.0, 20)]


def manifest_of(lo: float, width: float, bits: int, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401
    """A simulated release of values near one end."""
    random = np.random.default_rng(1)
    user = np.repeat(np.arange(60), 20)
    values = lo + width * np.clip(random.normal(0.9, 0.03, len(user)), 0, 1)
    columns = {"user": user, "cell": user % 3, "value": values}
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    own: dict[str, Any] = {"bounds": (lo, lo + width), "tick_bits": bits}
    records = shoal.Records(table, user="user", value="value", cell="cell", **own)
    plan = shoal.plan(records.occupancy(), uninformative="keep", **own, **wanted)
    return plan.release(records, noise=shoal.Simulated(2)).manifest


@pytest.mark.parametrize("statistics", [["mean"], ["mean", "variance"]], ids=len)
@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize(("lo", "width", "bits"), BOUNDS)
def test_true_releases_hold(
    lo: float, width: float, bits: int, delta: object, statistics: list[str]
) -> None:
    """G-VERIFY: a variance from both moments does not lose the places that its mean has not."""
    for epsilon in (0.01, 8, 200):
        wanted = {"statistics": statistics, "delta": delta, "epsilon": epsilon}
        manifest = manifest_of(lo, width, bits, **wanted)
        assert failed_claims(manifest) == ["noise of the operating system"]


@pytest.mark.parametrize("statistic", [0, 3], ids=["mean", "variance"])
@pytest.mark.parametrize("part", ["value", "low", "high", "unclamped", "whole"])
def test_what_is_a_millionth_of_the_range_away_is_found(statistic: int, part: str) -> None:
    """G-VERIFY: rounding far from 0 excuses no more than rounding, and no other interval."""
    manifest = manifest_of(1.7e9, 260.0, 20, statistics=["mean", "variance"], epsilon=200)
    manifest["simulation"] = False
    assert failed_claims(manifest) == []
    result = manifest["results"][statistic]
    moved = 1e-6 * (260.0 if statistic == 0 else 130.0**2)
    if part == "whole":
        result["interval"] = [1.7e9, 1.7e9 + 260] if statistic == 0 else [0.0, 130.0**2]
    elif part in {"value", "unclamped"}:
        result[part] += moved
    else:
        result["interval"][part == "high"] += moved
    rekey(manifest)
    assert failed_claims(manifest) == ["results"]
