"""Numbers so small, or so large, that NumPy speaks of them where its caller has asked for that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import mean, unbiased
from tests.support.loop import loop_over

pytestmark = [pytest.mark.audit, pytest.mark.full]

_USERS = np.repeat(np.arange(200), 3)
_TINY = 1.5e-323
_MEANS = (
    mean.baseline,
    mean.array_averaging,
    mean.opt_array_averaging,
    mean.worst_case_optimal,
    mean.levy,
    mean.quantile,
    mean.akmv,
    mean.adaptive,
    mean.auto,
)
_MOMENTS = [unbiased.Moment(2, 10), unbiased.Moment(8, 20)]
_MIDDLE = {"interval": (-5, 5)}
_UNBIASED: Mapping[str, Mapping[str, Any]] = {
    "clipped_mean": {**_MIDDLE, "epsilon": 1, "bias": 0.1},
    "sampled_mean": {**_MIDDLE, "delta": 1e-2, "publish_values": True},
    "clipped_plus_residual": {**_MIDDLE, "epsilon": 1, "delta": 1e-3, "publish_values": True},
    "symmetric_mean": {"epsilon": 4, "delta": 1e-3},
}


@pytest.fixture(autouse=True)
def _raising() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


def _values(first: float) -> np.ndarray:
    values = np.linspace(-3, 3, len(_USERS))
    values[0] = first
    return values


@loop_over("first", [_TINY, 0.5])
@loop_over("function", _MEANS)
def test_no_value_decides_whether_the_mean_of_one_cell_raises(function: Any, first: float) -> None:
    """A value below all others counts as 0, whatever the caller asks of NumPy."""
    for bounds in ((0, 1), (0, 1e10), (-1, 1)):
        found = function(_values(first), _USERS, bounds=bounds, epsilon=1)
        assert bounds[0] <= found.value <= bounds[1]


@pytest.mark.parametrize("domain", ["ball", "box"])
def test_no_value_decides_whether_a_vector_raises(domain: Any) -> None:
    """Nor in any dimension."""
    points = np.abs(np.stack([_values(_TINY)] * 2, axis=1))
    found = mean.vector(points, _USERS, bounds=(0, 1e10), epsilon=1, domain=domain)
    assert len(found.value) == 2


@pytest.mark.parametrize("users", [None, _USERS], ids=["rows", "users"])
@pytest.mark.parametrize("method", _UNBIASED)
def test_no_value_decides_whether_an_unbiased_mean_raises(method: str, users: Any) -> None:
    """By one call, and by a plan and its release."""
    settings = {"moment": _MOMENTS, **_UNBIASED[method]}
    counts = len(_USERS) if users is None else np.bincount(users)
    planned = unbiased.plan(method, counts, **settings)
    # A third of the least number is none.
    alone = np.where(np.arange(len(_USERS)), 0, 5e-324)
    for values in (_values(_TINY), alone, _values(1e308), _values(0.5)):
        for found in (
            getattr(unbiased, method)(values, users, **settings),
            planned.release(values, users),
        ):
            assert np.isfinite(found.value)
            assert method in str(found)


@pytest.mark.parametrize("scale", [1.0, 1e-99, 1e49, 1e-60])
def test_values_have_the_unit_of_the_values(scale: float) -> None:
    """Squares of squares of huge or tiny values are no numbers, but none is needed."""
    speeds = np.resize([0.1, 0.2, 0.4, 0.9], 600)
    found = []
    for unit in (1.0, scale):
        columns = {"who": _USERS, "speed": speeds * unit, "place": _USERS % 5}
        table = pa.table({name: pa.array(each) for name, each in columns.items()})
        records = shoal.Records(table, user="who", value="speed", bounds=(0, unit), by="place")
        plan = shoal.plan(records.counts(), method="balanced", bounds=(0, unit), epsilon=40)
        made = plan.release(records, noise=shoal.Simulated(1)).to_pandas()
        found.append(made[["plain", "value", "low", "high"]].to_numpy() / unit)
    assert np.isfinite(found[1]).all()
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-3)
    assert (found[1][:, 2] < found[1][:, 1]).all()
