"""Which estimator to take: every number follows from plans and lower bounds."""

import itertools
import json
import math
import warnings
from typing import Any

import numpy as np
import pytest

from shoal import bounds, unbiased
from shoal.errors import InputError
from shoal.means.recommend import Recommendation, best_bias, recommend, worst_moment
from shoal.theory import clipping
from shoal.unbiased import Moment
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

N = 2000
MOMENTS = (Moment(2, 1), Moment(4, 1.5))
WISH: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "moment": MOMENTS, "interval": (0, 10)}


def advice(**changes: Any) -> Recommendation:
    """For the usual request with changes."""
    return recommend(**{"n": N, **WISH, **changes})


@pytest.mark.parametrize("releases", [1, 50, 10**6])
def test_numbers_are_those_of_plans_and_bounds(releases: int) -> None:
    """One release, the average of many, and what nobody can beat."""
    found = advice(releases=releases, publish_values=True)
    assert len(found.options) == 4
    for option in found.options:
        made = option.plan
        assert made is not None
        assert option.rmse_bound == made.rmse_bound
        square = made.bias_bound**2 + made.standard_error**2 / releases
        assert option.total_error == pytest.approx(math.sqrt(square), rel=1e-12)
        if option.method == "symmetric_mean":
            assert option.lower_bound is option.ratio is None
            continue
        facts = (made.exact_epsilon, made.exact_delta, made.bias_bound, (4, 1.0))
        bound = bounds.trilemma(N, *facts, width=10).rmse
        assert option.lower_bound is not None
        assert option.lower_bound >= bound / math.sqrt(releases) * (1 - 1e-12)
        assert option.ratio is not None
        assert option.ratio >= 1
    totals = [option.total_error for option in found.options]
    assert totals == sorted(totals)
    assert found.recommended is found.options[0]


def test_bias_does_not_average_out() -> None:
    """The more releases, the smaller the best bias; at last an unbiased estimator wins."""
    found = [advice(releases=releases) for releases in (1, 100, 10**4, 10**6)]
    biases = [each["clipped_mean"].bias_bound for each in found]
    assert all(more > less for more, less in itertools.pairwise(biases))
    best = [each.recommended for each in found]
    assert best[0] is not None
    assert best[-1] is not None
    assert (best[0].method, best[-1].method) == ("clipped_mean", "symmetric_mean")
    other = found[-1].otherwise
    assert other is not None
    assert other.method == "clipped_mean"
    assert "if it may be skewed, take clipped_mean" in found[-1].reason
    assert "1000000 releases" in found[-1].reason


@pytest.mark.parametrize("releases", [1, 1000])
@pytest.mark.parametrize("most", [None, 0.05, 1e-4])
def test_the_best_bias_beats_every_other(releases: int, most: float | None) -> None:
    """Against plans at budgets on a grid."""
    ends = (0.0, 3.0)
    best = best_bias(N, 1, MOMENTS, ends, most=most, releases=releases)
    assert most is None or best <= most

    def total(bias: float) -> float:
        made = unbiased.plan("clipped_mean", N, moment=MOMENTS, epsilon=1, interval=ends, bias=bias)
        return math.hypot(made.bias_bound, made.standard_error / math.sqrt(releases))

    others = [bias for bias in np.geomspace(1e-6, 0.5, 40).tolist() if bias <= (most or 1)]
    assert total(best) <= min(map(total, others)) * (1 + 1e-6)
    assert min(map(total, others)) <= total(best) * 1.1


def test_publishing_is_shown_but_not_recommended_without_consent() -> None:
    """Certificates are there; plans only with consent."""
    wanted = {"moment": Moment(8, 1.5), "delta": "0.1", "releases": 10**6, "bias": 0.0}
    without, given = (advice(**wanted, publish_values=consent) for consent in (False, True))
    for method in ("sampled_mean", "clipped_plus_residual"):
        assert without[method].plan is None
        assert "publish_values" in without[method].why_not
        assert without[method].total_error == given[method].total_error < math.inf
        assert given[method].plan is not None
    assert without.recommended is not None
    assert without.recommended.method == "symmetric_mean"
    assert without.otherwise is None
    assert "nothing else can be had" in without.reason
    assert given.otherwise is not None
    assert given.otherwise.method == "clipped_plus_residual"


@pytest.mark.parametrize(
    ("changes", "possible"),
    [
        ({"delta": 0}, {"clipped_mean"}),
        ({"bias": 0}, {"symmetric_mean"}),
        ({"interval": None}, {"symmetric_mean"}),
        ({"interval": None, "delta": 0}, set()),
        ({"epsilon": 0, "publish_values": True}, {"sampled_mean"}),
        ({"n": 2, "delta": "1e-9"}, {"clipped_mean"}),
        ({"interval": (4, 4)}, {"clipped_mean", "symmetric_mean"}),
    ],
)
def test_what_is_impossible_says_why(changes: dict[str, Any], possible: set[str]) -> None:
    """A sentence for each; nothing is left out."""
    found = advice(**changes)
    assert {option.method for option in found.options if option.plan is not None} == possible
    assert all(option.why_not for option in found.options if option.plan is None)
    assert (found.recommended is None) == (not possible)
    assert found.reason.endswith(".")
    json.dumps(found.to_document(), allow_nan=False)


def test_counts_of_users_and_a_bias_that_is_kept() -> None:
    """Counts reach the plans; no option has more bias than was accepted."""
    found = advice(n=[3, 1, 2] * 500, bias=1e-3)
    option = found["clipped_mean"]
    assert option.plan is not None
    assert option.plan.request.counts.tolist() == sorted([3, 1, 2] * 500)
    assert option.bias_bound <= 1e-3
    assert found.users == 1500


@pytest.mark.parametrize("cap", [None, 3])
def test_the_table_is_of_the_weights_that_were_asked_for(cap: int | None) -> None:
    """What is compared is what would be released, with weighted users too."""
    counts = [1] * 900 + [50] * 20
    found = advice(n=counts, weights="counts", cap=cap, bias=1.0, publish_values=True)
    assert (
        found["clipped_mean"].rmse_bound
        > 1.05 * advice(n=counts, bias=1.0)["clipped_mean"].rmse_bound
    )
    for option in found.options:
        assert option.plan is not None
        assert option.plan.request.weights == "counts"
        assert option.plan.request.cap == cap
        assert option.rmse_bound == option.plan.rmse_bound


def test_tables_texts_and_documents_agree() -> None:
    """The same order and numbers everywhere."""
    found = advice(releases=9)
    rows, document = found.table().to_pylist(), found.to_document()
    assert rows == document["options"]
    assert [row["method"] for row in rows] == [option.method for option in found.options]
    lines = str(found).split("\n")
    assert [line.split()[0] for line in lines[1:5]] == [row["method"] for row in rows]
    assert lines[-1] == document["reason"] == found.reason
    assert document["recommended"] == rows[0]["method"]


def test_one_moment_implies_all() -> None:
    """Distributions of the one class are in all: two points, several sizes."""
    order, size = worst_moment(MOMENTS)
    assert (order, size) == (4, 1)
    for chance in (0.5, 0.1, 0.001):
        far = size * (chance * (1 - chance) ** order + (1 - chance) * chance**order) ** (-1 / order)
        for moment in MOMENTS:
            p = moment.order
            found = far**p * (chance * (1 - chance) ** p + (1 - chance) * chance**p)
            assert found <= moment.size**p * (1 + 1e-12)
    assert clipping.deviation(MOMENTS) == size


@loop_over(
    "changes",
    [
        {"n": 0},
        {"n": [1, 0]},
        {"epsilon": -1},
        {"epsilon": 0, "delta": 0},
        {"delta": 1},
        {"moment": (2, 1)},
        {"interval": (1, 0)},
        {"interval": "ab"},
        {"bias": -1},
        {"bias": float("nan")},
        {"bias": "x"},
        {"releases": 0},
        {"releases": 1.5},
        {"releases": True},
    ],
)
def test_unusable_wishes_are_refused(changes: dict[str, Any]) -> None:
    """An InputError each."""
    with pytest.raises(InputError):
        advice(**changes)


def test_small_integers_are_numbers_like_others() -> None:
    """Of any width; no product overflows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = advice(releases=np.int8(100), publish_values=True)
    assert str(found) == str(advice(releases=100, publish_values=True))
