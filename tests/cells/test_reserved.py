"""Cell columns keep out of the names that tables of results have."""

import pyarrow as pa
import pytest

import shoal
from shoal.data.records import RESERVED
from shoal.errors import InputError
from tests.support import flights

pytestmark = pytest.mark.full


def test_no_column_of_a_result_can_be_a_cell_column() -> None:
    """What tables of results add is refused as a cell's column, before a charge."""
    records = flights.records()
    plan = shoal.plan(records.counts(), method="balanced", bounds=flights.BOUNDS, epsilon=1)
    release = plan.release(records, noise=shoal.Simulated(1))
    cells = set(plan.counts.cells.column_names)
    added = set(release.table().column_names) - cells
    assert added <= RESERVED
    for name in sorted(added):
        table = pa.table({"who": ["a"], "x": [1.0], name: ["k"]})
        with pytest.raises(InputError, match="has a reserved name"):
            shoal.Records(table, user="who", value="x", bounds=(0, 9), by=name)
