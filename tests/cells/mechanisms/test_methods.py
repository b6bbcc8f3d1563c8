"""The table of methods: a row is all that planning, files and releases know of a mechanism."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.mechanisms.methods import METHODS
from shoal.verification.recount.cells_loss import COUNTED
from tests.support.toy_mechanism import TOY, recounted


@pytest.fixture(autouse=True, scope="module")
def _toy() -> Iterator[None]:
    """A row in the table of methods, and one in that of the recount, which knows no methods."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "toy", TOY)
        patch.setitem(COUNTED, "toy", recounted)
        yield


def test_a_mechanism_of_one_file_is_planned_saved_and_released(tmp_path: Path) -> None:
    """Its weights, which nothing else in the library knows, are those of the released means."""
    rng = np.random.default_rng(3)
    # In both cells users with many records have high values.
    user = np.repeat(np.arange(200), np.where(np.arange(200) < 20, 16, 1))
    value = np.where(user < 20, 9.0, 1.0) + rng.uniform(-0.5, 0.5, len(user))
    table = pa.table({"who": user, "at": user % 2, "value": value})
    records = shoal.Records(
        table, user="who", value="value", by="at", bounds=(0, 10), counts="public"
    )
    plan = shoal.plan(records, epsilon=50, method="toy", uninformative="keep")
    plan.save(tmp_path / "plan.json")
    plan = shoal.Plan.load(tmp_path / "plan.json")
    found = plan.release(records, noise=shoal.Simulated(1)).to_pandas()["value"]
    # Of 100 users of a cell, ten count four times.
    of_users = np.bincount(user, value) / np.bincount(user)
    weight = np.where(np.arange(200) < 20, 4, 1)
    for cell in (0, 1):
        expected = np.average(of_users[cell::2], weights=weight[cell::2])
        assert found[cell] == pytest.approx(expected, abs=0.1)
        assert abs(expected - value[user % 2 == cell].mean()) > 1
