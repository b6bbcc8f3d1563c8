"""Which estimator to take: every number follows from plans and lower bounds."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from shoal import bounds, unbiased
from shoal.errors import InputError
from shoal.means.recommend import Recommendation, best_bias, recommend, worst_moment
from shoal.means.request import Request
from shoal.unbiased import Moment
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

N = 2000
MOMENTS = (Moment(2, 1), Moment(4, 1.5))
ASKED: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "moment": MOMENTS, "interval": (0, 10)}


def advice(**changes: Any) -> Recommendation:
    """For the usual request with changes."""
    return recommend(**{"n": N, **ASKED, **changes})


@pytest.mark.parametrize("releases", [1, 10**6])
def test_numbers_are_those_of_plans_and_bounds(releases: int) -> None:
    """One release, the average of many, and what nobody can beat; the same in all forms."""
    found = advice(releases=releases)
    for option in found.options:
        made = option.plan
        assert made is not None
        square = made.bias_bound**2 + made.standard_error**2 / releases
        assert option.total_error == pytest.approx(math.sqrt(square), rel=1e-12)
    clipped, symmetric = found["clipped_mean"], found["symmetric_mean"]
    assert symmetric.lower_bound is symmetric.row()["ratio"] is None
    assert clipped.plan is not None
    assert clipped.lower_bound is not None
    facts = (clipped.plan.epsilon, 0, clipped.plan.bias_bound, (4, 1.0))
    least = max(
        bounds.trilemma(N, *facts, width=10).rmse / math.sqrt(releases),
        bounds.trilemma(N * releases, *facts, width=10).rmse,
    )
    assert clipped.lower_bound == pytest.approx(least, rel=1e-9)
    assert clipped.row()["ratio"] == clipped.total_error / clipped.lower_bound >= 1
    rows, document = found.table().to_pylist(), found.to_document()
    assert rows == document["options"]
    errors = [row["total_error"] for row in rows]
    assert errors == sorted(errors)
    lines = str(found).replace("\n  ", " ").split("\n")
    assert [line.split()[0] for line in lines[2:4]] == [row["method"] for row in rows]
    assert lines[-1] == document["reason"] == found.reason
    assert document["recommended"] == rows[0]["method"]


def test_bias_does_not_average_out() -> None:
    """The more releases, the smaller the best bias; at last an unbiased estimator wins."""
    found = [advice(releases=releases) for releases in (1, 100, 10**6)]
    plans = [each["clipped_mean"].plan for each in found]
    biases = [each.bias_bound for each in plans if each is not None]
    assert all(more > less for more, less in itertools.pairwise(biases))
    best = [each.recommended for each in found]
    assert best[0] is not None
    assert best[-1] is not None
    assert (best[0].method, best[-1].method) == ("clipped_mean", "symmetric_mean")
    assert "if it may be skewed, use clipped_mean" in found[-1].reason


@pytest.mark.parametrize(("releases", "most"), [(1, None), (1000, None), (1000, 1e-4)])
def test_the_best_bias_beats_every_other(releases: int, most: float | None) -> None:
    """Against plans at budgets on a grid."""
    ends = (0.0, 3.0)
    asked = {"moments": MOMENTS, "epsilon": 1, "interval": ends, "bias": 1}
    request = Request.of(method="clipped_mean", **asked)
    best = best_bias(request, np.ones(N, dtype=np.int64), most=most, releases=releases)
    assert most is None or best <= most

    def total(bias: float) -> float:
        made = unbiased.plan("clipped_mean", N, moment=MOMENTS, epsilon=1, interval=ends, bias=bias)
        return math.hypot(made.bias_bound, made.standard_error / math.sqrt(releases))

    others = [bias for bias in np.geomspace(1e-6, 0.5, 40).tolist() if bias <= (most or 1)]
    assert total(best) <= min(map(total, others)) * (1 + 1e-6)


@loop_over(
    ("changes", "possible"),
    [
        ({"delta": 0}, {"clipped_mean"}),
        ({"bias": 0}, {"symmetric_mean"}),
        ({"interval": None}, {"symmetric_mean"}),
        ({"interval": None, "delta": 0}, set()),
        ({"n": 2, "delta": "1e-9"}, {"clipped_mean"}),
        ({"interval": (4, 4)}, {"clipped_mean", "symmetric_mean"}),
    ],
)
def test_what_is_impossible_says_why(changes: dict[str, Any], possible: set[str]) -> None:
    """A sentence for each; nothing is left out."""
    found = advice(**changes)
    assert {option.method for option in found.options if option.plan is not None} == possible
    assert all(option.reason for option in found.options if option.plan is None)
    assert (found.recommended is None) == (not possible)
    assert found.reason.endswith(".")
    json.dumps(found.to_document(), allow_nan=False)


def test_what_is_compared_is_what_would_be_released() -> None:
    """Counts, weights, cap and a bias budget reach the plans."""
    counts = [1] * 900 + [50] * 20
    found = advice(n=counts, weights="counts", cap=3, bias=1e-3)
    for option in found.options:
        assert option.plan is not None
        assert option.plan.counts.tolist() == sorted(counts)
        assert (option.plan.request.weights, option.plan.request.cap) == ("counts", 3)
        assert option.plan.bias_bound <= 1e-3


def test_one_moment_implies_all() -> None:
    """The largest order with the smallest size: fourth roots are above square roots."""
    assert worst_moment(MOMENTS) == (4, 1)
    assert worst_moment((Moment(2, 1.2), Moment(4, 1.1))) == (4, 1.1)


@loop_over(
    "changes",
    [
        *({"n": x} for x in (0, [1, 0])),
        *({"epsilon": x} for x in (-1, 0, "1e309", 1e7)),
        *({"interval": x} for x in ((1, 0), "ab")),
        *({"bias": x} for x in (-1, float("nan"), "x")),
        *({"releases": x} for x in (0, 1.5, True)),
        {"delta": 1},
        {"moment": (2, 1)},
        {"weights": "x"},
        {"cap": 2},
    ],
)
def test_unusable_requests_are_refused(changes: dict[str, Any]) -> None:
    """An InputError each."""
    with pytest.raises(InputError):
        advice(**changes)
