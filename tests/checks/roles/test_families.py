"""No family takes the private column in a public role, in any form; other columns it takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal import mean, trials, unbiased
from shoal.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.unit
N = 40
SPACE = trials.Space.counts(0, N)
MECHANISMS = {
    "cluster_dp": trials.ClusterDP(2),
    "cluster_free": trials.ClusterFree(2),
    "uniform_prior": trials.UniformPrior(2),
    "best_table": trials.BestTable(2, levels=5),
    "horvitz_thompson": trials.NoisyHorvitzThompson(2),
    "histogram": trials.NoisyHistogram(2),
}
MEANS = [
    mean.baseline,
    mean.array_averaging,
    mean.opt_array_averaging,
    mean.worst_case_optimal,
    mean.levy,
    mean.quantile,
    mean.akmv,
    mean.adaptive,
    mean.auto,
]
MOMENT = unbiased.Moment(2, 5)
UNBIASED: dict[str, Callable[..., Any]] = {
    "clipped_mean": partial(
        unbiased.clipped_mean, interval=(0, 40), bias=1, moment=MOMENT, epsilon=1
    ),
    "sampled_mean": partial(
        unbiased.sampled_mean,
        interval=(0, 40),
        moment=MOMENT,
        delta=0.1,
        publish_values=True,
    ),
    "clipped_plus_residual": partial(
        unbiased.clipped_plus_residual,
        interval=(0, 40),
        moment=MOMENT,
        epsilon=1,
        delta=0.1,
        publish_values=True,
    ),
    "symmetric_mean": partial(
        unbiased.symmetric_mean, moment=MOMENT, epsilon=4, delta=0.5, noise=shoal.Simulated(1)
    ),
    "plan.release": lambda values, users=None: unbiased.plan(
        "clipped_mean", N, moment=MOMENT, epsilon=1, interval=(0, 40), bias=1
    ).release(values, users),
}
# The same column twice, and one column that another library holds.
FORMS: tuple[Callable[[Any], tuple[Any, Any]], ...] = (
    lambda values: (values, values),
    lambda values: (values, pa.array(values)),
)


@pytest.mark.parametrize("name", MECHANISMS)
def test_trials_refuse_the_outcome_as_anything_public(name: str) -> None:
    """Treatment, cluster and names of units are published as they are."""
    for role in ("treatment", "cluster", "unit"):
        for form in FORMS:
            outcome, other = form(np.arange(N))
            public: dict[str, Any] = {"treatment": np.arange(N) % 2, role: other}
            with pytest.raises(InputError, match=f"memory that it shares, as {role}"):
                MECHANISMS[name].privatize(outcome, **public, space=SPACE)


def test_means_refuse_the_values_as_users() -> None:
    """Counts of users are public and would be counts of values."""
    for function in MEANS:
        for form in FORMS:
            values, users = form(np.arange(N))
            with pytest.raises(InputError, match="value column, or memory that it shares, as user"):
                function(values, users, bounds=(0, N), epsilon=1)


@pytest.mark.parametrize("domain", ["ball", "box"])
def test_vectors_refuse_one_of_their_columns_as_users(domain: Any) -> None:
    """A column of the matrix of values is a private column."""
    points = np.arange(3.0 * N).reshape(N, 3)
    with pytest.raises(InputError, match="value column, or memory that it shares, as user"):
        mean.vector(points, points[:, 2].view(np.int64), bounds=(0, 9), epsilon=1, domain=domain)
    whole = np.arange(4 * N).reshape(N, 4)
    found = mean.vector(whole[:, 1:], whole[:, 0], bounds=(0, 9), epsilon=1, domain=domain)
    assert len(found.value) == 3


def test_unbiased_means_refuse_the_values_as_users() -> None:
    """Whether planned before or on the way."""
    for function in UNBIASED.values():
        for form in FORMS:
            values, users = form(np.arange(N))
            with pytest.raises(InputError, match="value column, or memory that it shares, as user"):
                function(values, users)


@pytest.mark.parametrize(
    "options",
    [
        {"user": "speed"},
        {"user": "SPEED"},
        {"cell": "speed"},
        {"cell": ["place", "Speed"]},
        {"cell": "timeslot(speed,1h)"},
        {"cell": "hour_of_day(SPEED)"},
        {"cell": ["place", "hexagon(lat,speed,7)"]},
        {"cell": "hexagon(sPeed,lon,7)"},
    ],
    ids=str,
)
def test_records_refuse_the_value_by_its_name(options: dict[str, Any]) -> None:
    """As user, as cell and within a cell rule, in any case of letters; nothing is read."""
    with pytest.raises(InputError, match=r"the value column 'speed' as (user|cell)"):
        shoal.Records(
            object(),
            **{"user": "who", "value": "speed", "bounds": (0, 9), "cell": "place"} | options,
        )


def test_names_that_differ_in_case_alone_are_refused() -> None:
    """DuckDB reads the one column where the other is named, so neither is certain."""
    table = pa.table({"who": [1, 2], "speed": [3.0, 4.0], "Place": [5, 6], "place": [7, 8]})
    records = shoal.Records(table, user="who", value="speed", bounds=(0, 9), cell="place")
    with pytest.raises(DataError, match="called 'place' but for case"):
        records.occupancy()


def test_a_control_arm_is_one_arm() -> None:
    """A column given as the control is refused, and nothing of it is shown."""
    outcome: Any = np.arange(431567, 431567 + N)
    for control in (outcome, outcome.tolist(), pa.array(outcome), memoryview(outcome)):
        with pytest.raises(InputError, match="a control arm of type") as caught:
            trials.UniformPrior(1).privatize(
                outcome, np.arange(N) % 2, space=SPACE, control=control
            )
        assert "4315" not in str(caught.value)


@pytest.mark.parametrize("name", ["outcome_name", "name"])
def test_a_name_is_a_text(name: str) -> None:
    """An array of outcomes is no name, and is not shown."""
    outcome: Any = np.arange(431567, 431567 + N)
    with pytest.raises(InputError, match="not printable text") as caught:
        trials.UniformPrior(1).privatize(outcome, np.arange(N) % 2, space=SPACE, **{name: outcome})
    assert "4315" not in str(caught.value)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_columns_of_one_matrix_frame_or_table_are_taken(mechanism: trials.ClusterDP) -> None:
    """Distinct columns pass, however close they lie in memory."""
    at = np.arange(N)
    matrix: Any = np.stack([at % 5, at % 2, at // 2 % 2, at], axis=1)
    structured = np.zeros(
        N, dtype=[("outcome", "f8"), ("treatment", "i4"), ("cluster", "i8"), ("unit", "i8")]
    )
    names = ["outcome", "treatment", "cluster", "unit"]
    for place, name in enumerate(names):
        structured[name] = matrix[:, place]
    frames: list[Any] = [
        {name: matrix[:, place] for place, name in enumerate(names)},
        pd.DataFrame(matrix, columns=names),
        pl.DataFrame(matrix, schema=names),
        pa.table({name: matrix[:, place].copy() for place, name in enumerate(names)}),
        structured,
        {name: matrix[:, place].tolist() for place, name in enumerate(names)},
    ]
    for frame in frames:
        outcome, treatment, cluster, unit = (frame[name] for name in names)
        made = mechanism.privatize(outcome, treatment, cluster, unit=unit, space=SPACE)
        assert made.assignment.n == N


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_nothing_but_what_was_drawn_depends_on_outcomes(mechanism: trials.ClusterDP) -> None:
    """With the same noise, manifests of any outcomes differ in what was released alone."""
    at = np.arange(N)
    found = [
        mechanism.privatize(
            outcome,
            at % 2,
            at // 2 % 2,
            unit=at,
            space=SPACE,
            outcome_name="visits",
            noise=shoal.Simulated(1),
        ).manifest
        for outcome in (np.zeros(N), np.full(N, N), at.copy())
    ]
    for manifest in found:
        del manifest["results"]
    assert found[0] == found[1] == found[2]
