"""Names of columns, as files have them, in manifests: honest ones verify, others do not."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import shoal
from shoal import documents, unbiased
from shoal.trials import Experiment, Space
from tests.support.loop import loop_over

Family = Callable[[str], documents.Document]


# What a file's head `who, place, value` makes, and names that Python calls printable.
NAMES = (" value", "value ", "the  value", "größe", "价值", "\u3164", "x" * 200)


def _cells(value: str, cell: str = "place") -> documents.Document:
    table = pa.table(
        {
            "who": np.repeat(np.arange(40), 4).tolist(),
            cell: ["a", "b", "c", "d"] * 40,
            value: [float(at % 97) for at in range(160)],
        }
    )
    records = shoal.Records(table, user="who", value=value, bounds=(0, 100), by=cell)
    plan = shoal.plan(records.counts(), bounds=(0, 100), epsilon=1)
    return plan.release(records, noise=shoal.Simulated(1)).manifest


def _trial(outcome: str) -> documents.Document:
    bought, arm = np.tile([0, 1, 1, 0], 25), np.tile(["old", "new"], 50)
    study = Experiment(arm)
    plan = study.table(Space.binary(), epsilon=2)
    return plan.release(bought, study, outcome_name=outcome, noise=shoal.Simulated(1)).manifest


def _mean(value: str) -> documents.Document:
    plan = unbiased.plan(
        "symmetric_mean", 5000, moment=unbiased.Moment(2, 10), epsilon=1, delta=1e-6
    )
    drawn = plan.release(np.arange(5000.0) % 50, values_name=value, noise=shoal.Simulated(1))
    return drawn.manifest


@loop_over("name", NAMES)
@loop_over("family", [_cells, _trial, _mean])
def test_a_manifest_verifies_whatever_its_private_column_is_named(
    family: Family, name: str
) -> None:
    """Blanks at an end or doubled are the file's, and nothing to hold against it."""
    verdict = shoal.verify(family(name))
    assert [check.claim for check in verdict.checks if not check.holds] == [
        "noise of the operating system"
    ]
