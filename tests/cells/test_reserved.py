"""Cell columns keep out of the names that tables of results have."""

import pytest

import shoal
from shoal.files.tables import RESULT_COLUMNS
from tests.support import flights

pytestmark = pytest.mark.full


def test_every_column_of_a_result_is_known() -> None:
    """A cell's column of such a name gets a line behind it, so that no name stands twice."""
    records = flights.records()
    plan = shoal.plan(records.counts(), method="balanced", bounds=flights.BOUNDS, epsilon=1)
    release = plan.release(records, noise=shoal.Simulated(1))
    cells = set(plan.counts.cells.column_names)
    for table in (release.table(), plan.table()):
        assert set(table.column_names) - cells <= RESULT_COLUMNS
