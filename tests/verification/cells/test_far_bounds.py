"""The second opinion where bounds lie far from 0 and close together, such as times since 1970."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError
from shoal.verification.cells.errors import compare
from tests.support.verdicts import DAMAGED, failed_claims, rekey

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
    plan = shoal.plan(
        records.occupancy(), uninformative="keep", **own, **{"method": "balanced", **wanted}
    )
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


def moved(bounds: tuple[float, float], bits: int) -> dict[str, Any]:
    """A manifest whose figures are those of other bounds, as far as floats tell them apart."""
    manifest = manifest_of(0.0, 1.0, 20, statistics=["mean"], epsilon=8)
    manifest["simulation"] = False
    plan, (low, high) = manifest["plan"], bounds
    plan["bounds"], plan["tick_bits"] = list(bounds), bits
    for claim in ("bias_bound", "worst_case_error", "lower_bound"):
        plan["claims"][claim] = [(high - low) * each for each in plan["claims"][claim]]
    for result in manifest["results"]:
        for part in ("value", "unclamped"):
            result[part] = low + (high - low) * result[part]
        result["interval"] = [low + (high - low) * end for end in result["interval"]]
    rekey(manifest)
    return manifest


@pytest.mark.parametrize(
    ("bounds", "bits"),
    [
        ((2.0**52, 2.0**52 + 1), 20),
        ((1e16, 1e16 + 4), 20),
        ((2.0**40, 2.0**40 + 1), 3),
        ((1.7e9, 1.7e9 + 260), 24),
        ((0.0, 1e-300), 20),
        ((0.0, 0.99e-100), 20),
        ((0.0, 1.01e50), 20),
    ],
)
def test_bounds_that_nothing_is_released_in_are_refused(
    bounds: tuple[float, float], bits: int
) -> None:
    """G-VERIFY: where rounding to floats is no less than a tick, it would excuse any value."""
    assert failed_claims(moved((0.0, 8.0), 20)) == []
    with pytest.raises(InputError):
        Lattice(Bounds(*bounds), bits)
    assert failed_claims(moved(bounds, bits)) == [DAMAGED]


def test_narrow_bounds_excuse_no_claim() -> None:
    """G-VERIFY: errors are compared with their own size, however small they are."""
    truth = [1e-310, 3e-305]
    assert compare(truth, truth)[0]
    assert not compare(truth, [0.0, 3e-305])[0]
    assert not compare([0.0], [1e-310])[0]
    manifest = moved((0.0, 1e-99), 20)
    assert failed_claims(manifest) == []
    manifest["plan"]["claims"]["bias_bound"] = [0.0] * 3
    assert failed_claims(manifest) == ["bias bounds"]
