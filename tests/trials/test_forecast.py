"""Forecasts: exact variances of releases, recommendations, other numbers of units, refusals."""

import math
from typing import Any

import numpy as np
import pytest

from shoal import intervals
from shoal.errors import InputError
from shoal.trials import Domain, Expected, Experiment, forecast
from shoal.trials.expected import kinds_of
from shoal.trials.forecasting import even

pytestmark = pytest.mark.oracle

SIZES = [[30, 20], [50, 60]]
DOMAIN = Domain.counts(0, 10)
WEIGHT = np.array([50, 110]) / 160
FOR = {"effect": "if only effects", "clusters": "if effects by cluster", "table": "if later"}


def _rate(mean: float) -> tuple[float, float]:
    """Outcome variance of a rate, and of a randomised response at e with its debiased values."""
    e = math.e
    return mean * (1 - mean), e / (e - 1) ** 2


def test_binary_outcomes_have_closed_forms() -> None:
    """Neyman's sum of p (1 - p) and of what each release adds, by hand."""
    found = forecast(SIZES, Domain.binary(), 1, expected=Expected(0.3))
    part = float((WEIGHT[:, None] ** 2 / np.array(SIZES)).sum())
    plain, added = _rate(0.3)
    for name, more in (("no_privacy", 0), ("uniform_prior", added), ("best_table", added)):
        expected = math.sqrt(part * (plain + more))
        assert found[name].standard_error == pytest.approx((expected, expected), rel=3e-4)
    # Two levels from their middle: squares of 1/4 each, noise of a count 2 (2/epsilon)^2.
    noise = 8 * 0.5 * float((WEIGHT[:, None] ** 2 / np.array(SIZES) ** 2).sum())
    error = math.sqrt(part * plain + noise)
    assert found["histogram"].standard_error[0] == pytest.approx(error, rel=1e-5)
    by_hand = 2 * float((WEIGHT / np.array(SIZES).min(axis=1)).max()) ** 2
    error = math.sqrt(part * plain + by_hand)
    assert found["laplace_by_hand"].standard_error[0] == pytest.approx(error)
    assert math.isnan(found["laplace_by_hand"].cluster_error[0])


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_questions_are_forecast_as_their_plan_says(arms: int) -> None:
    """Root mean square over arms, of effects and of effects by cluster; what they need in all."""
    at = np.arange(240 * arms)
    study = Experiment(at % arms, at // arms % 3, control=0)
    row = study.forecast(DOMAIN, 1, expected=Expected(5, 2))["questions"]
    assert row.standard_error[0] == row.standard_error[1]
    for by, error in ((None, row.standard_error[0]), ("cluster", row.cluster_error[0])):
        plan = study.ask().effect(by).plan(DOMAIN, 1, sd=2)
        planned = [each.standard_error**2 for each in plan.predicted]
        assert error == pytest.approx(math.sqrt(np.mean(planned)), rel=0.03)


def test_a_family_of_expectations_is_its_members() -> None:
    """Least and most standard errors are those of the members, one by one."""
    domain = Domain.binary()
    found = forecast(SIZES, domain, 1)
    kinds = kinds_of(None, domain)
    assert kinds.share.sum() == pytest.approx(15)
    each = [
        forecast(SIZES, domain, 1, expected=Expected(rate, between=between))["uniform_prior"]
        for rate in (0.05, 0.2, 0.5, 0.8, 0.95)
        for between in (0.0, 0.1, 0.5)
    ]
    errors = [row.standard_error[0] for row in each]
    assert found["uniform_prior"].standard_error == pytest.approx((min(errors), max(errors)))


@pytest.mark.parametrize("domain", [Domain.binary(), DOMAIN, Domain.bins(0, 100, 40)])
@pytest.mark.parametrize("epsilon", [0.25, 1, 4])
def test_what_is_recommended_errs_least(domain: Domain, epsilon: float) -> None:
    """Within 2% of the least variance of all that may be had for each purpose."""
    for sizes in (SIZES, [[300, 300]] * 20):
        found = forecast(sizes, domain, epsilon)
        for purpose in found.purposes:
            chosen = found.recommend(purpose).errors(purpose)[1]
            others = [each for each in found.rows[1:] if each.releases != "one number"]
            if purpose == "table":
                others = [each for each in others if each.releases == "units"]
            assert chosen**2 * (1 - 0.02) <= min(each.errors(purpose)[1] ** 2 for each in others)
            assert f"recommended {FOR[purpose]}" in str(found)


def test_power_detectable_and_other_sizes() -> None:
    """Those of `shoal.intervals` at the largest error; four times the units halve it."""
    found = forecast(1000, Domain.binary(), 1, effect=0.2, confidence=0.9, power=0.7)
    error = found["best_table"].standard_error[1]
    assert found["best_table"].power == intervals.power(0.2, error, 0.9)
    assert found["best_table"].detectable == intervals.detectable(error, 0.7, 0.9)
    table = found.against(n=[1000, 4000], epsilon=[1, 2], clusters=[1, 5]).to_pandas()
    assert len(table) == 8 * 6
    own = table[(table.mechanism == "best_table") & (table.clusters == 1) & (table.epsilon == 1)]
    first, second = own.sort_values("n").standard_error
    assert first == pytest.approx(2 * second, rel=1e-6)
    assert found.table().num_rows == 6
    document = found.to_document()
    assert document["mechanisms"][2]["standard_error"] == error
    assert document["recommended_for"]["effect"] == found.recommend("effect").mechanism


def test_even_cells() -> None:
    """Clusters and arms alike up to one unit."""
    assert even(11, 2, [0.5, 0.5]).tolist() == [[3, 3], [2, 3]]
    assert even(100, 1, [1, 2, 1]).tolist() == [[25, 50, 25]]


def test_what_does_not_fit_is_left_out() -> None:
    """Beyond what tables and counts are made for."""
    assert "best_table" not in {each.mechanism for each in forecast(SIZES, DOMAIN, 9).rows}
    assert forecast(SIZES, DOMAIN, 9).recommend("table").mechanism == "uniform_prior"


@pytest.mark.parametrize(
    "wanted",
    [
        {"sizes": [[0, 1]]},
        {"sizes": [[5], [6]]},
        {"sizes": [1, 2]},
        {"sizes": [[1.5, 2.0]]},
        {"sizes": True},
        {"sizes": 1},
        {"clusters": 2},
        {"sizes": 10, "clusters": 6},
        {"sizes": 10, "shares": [1]},
        {"sizes": 10, "shares": [0, 1]},
        {"epsilon": 0},
        {"confidence": 1},
    ],
)
def test_unusable_forecasts_are_refused(wanted: dict[str, Any]) -> None:
    """In words, before anything is computed."""
    given: dict[str, Any] = {"sizes": SIZES, "domain": DOMAIN, "epsilon": 1, **wanted}
    with pytest.raises(InputError):
        forecast(**given)


def test_unusable_names_are_refused() -> None:
    """Mechanisms, purposes and expectations of another domain."""
    found = forecast(SIZES, DOMAIN, 1)
    for call in (
        lambda: found["magic"],
        lambda: found.recommend("fun"),
        lambda: forecast(SIZES, DOMAIN, 1, expected=Expected(0.2)),
        lambda: forecast(SIZES, DOMAIN, 1, expected=Expected(50, 1)),
        lambda: Expected(2),
        lambda: Expected(2, -1),
        lambda: Expected(2, 1, between=2),
    ):
        with pytest.raises(InputError):
            call()
