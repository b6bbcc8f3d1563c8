"""One small release a family, from a finished plan to what is delivered, for measuring its way."""

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import shoal
from shoal import trials, unbiased

_USERS, _CELLS = 12, 3


def releases(ledger: shoal.Ledger | None = None) -> dict[str, Callable[[], object]]:
    """A function a family; every call is a release on this ledger, or a new one on its own."""
    folder = tempfile.mkdtemp(prefix="shoal-tests-")
    numbers = itertools.count()

    def book() -> shoal.Ledger:
        if ledger is not None:
            return ledger
        path = Path(folder) / f"{next(numbers)}.ledger"
        return shoal.Ledger.create(
            path, epsilon=10, delta="0.1", privacy_unit="person", counts="public"
        )

    rows = np.arange(_USERS * _CELLS)
    values = (rows % 7).astype(float)
    table = pa.table(
        {
            "user": pa.array(rows % _USERS),
            "cell": pa.array(rows // _USERS),
            "value": pa.array(values),
        }
    )
    records = shoal.Records(
        table, user="user", by=["cell"], value="value", bounds=(0, 10), counts="public"
    )
    plan = shoal.plan(records.counts(), epsilon=1, bounds=(0, 10), method="equalised")
    domain, study = trials.Domain.counts(0, 6), trials.Experiment(np.arange(len(values)) % 2)
    mean = unbiased.plan(
        counts=np.ones(300, dtype=int), method="symmetric_mean", moment=unbiased.Moment(2, 1),
        epsilon=2, delta="1e-6",
    )  # fmt: skip
    people = np.arange(300)

    def trial() -> object:
        return study.table(domain, 1).release(
            values, study, ledger=book(), outcome_name="visits", privacy_unit="person"
        )

    return {
        "cell mean": lambda: plan.release(records, ledger=book(), privacy_unit="person"),
        "trial": trial,
        "unbiased mean": lambda: mean.release(
            people % 9 + 40.0, people, ledger=book(), values_name="height", privacy_unit="person"
        ),
    }
