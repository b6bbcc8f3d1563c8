"""Noise scales, again: those of the method that a manifest names, or a claim that fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.cells import queries
from shoal.cells.derived import planned
from shoal.errors import InputError
from shoal.verification.cells.errors import Errors
from shoal.verification.cells.losses import Losses
from shoal.verification.cells.scales import scales_hold, together
from tests.support import flights, occupancies
from tests.support.verdicts import failed_claims
from tests.verification.cells.test_forms import of_plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.property

THREE = ("share_above(400)", "mean", "variance")
SHARED = ("uniform", "equalised", "balanced")
# Whose noise is what is left after selections, or follows from a program: no formula gives it.
SPENDING = (
    *("levy", "quantile", "akmv", "adaptive", "baseline", "array_averaging", "worst_case_optimal"),
    "user_clipped",
)
WAYS: dict[str, dict[str, Any]] = {
    "mean": {},
    "three": {"statistics": THREE, "epsilon": 5},
    "both": {"statistics": THREE[1:], "epsilon": 5},
    "gaussian": {"delta": "1e-3", "epsilon": 2},
    "gaussian of three": {"statistics": THREE, "delta": "1e-3", "epsilon": 2},
    "error": {"epsilon": None, "error": 200.0},
}


def told(plan: shoal.Plan) -> list[str]:
    """Claims that fail in the manifest of a release by such a plan, all of its numbers fitting."""
    # As if the planner had made it: the second opinion does not know who did.
    manifest = planned(plan).release(flights.records(), noise=shoal.Simulated(3)).manifest
    return failed_claims({**manifest, "simulation": False})


def said(plan: shoal.Plan, **request: Any) -> shoal.Plan:  # noqa: ANN401
    """The same plan, as if another had been asked for; without duals, which prove only its own."""
    return replace(plan, duals=None, request=replace(plan.request, **request))


def scaled(plan: shoal.Plan, factor: NDArray[np.float64] | float) -> shoal.Plan:
    """The same plan with other noise; loss, errors and bounds follow."""
    return replace(plan, relative_scale=plan.relative_scale * factor)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", SHARED)
def test_a_plan_goes_by_its_own_name(method: str, way: str) -> None:
    """G-VERIFY: noise shared by one method is no other method's, whatever its loss and errors."""
    plan = flights.plan(method=method, uninformative="keep", **WAYS[way])
    assert told(plan) == []
    for other in {*SHARED} - {method, "balanced"}:
        assert told(said(plan, method=other)) == ["noise scales"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["uniform", "equalised"])
def test_other_noise_than_the_method_adds_is_found(method: str, way: str) -> None:
    """G-VERIFY: more noise at a smaller loss, in all cells or in one, is not the method's."""
    plan = flights.plan(method=method, uninformative="keep", **WAYS[way])
    # A plan for an error has less noise at a larger loss: its error is kept, but not used.
    other = 0.999 if "error" in WAYS[way] else 1.001
    assert told(scaled(plan, other)) == ["noise scales"]
    assert told(scaled(plan, other**700)) == ["noise scales"]
    one = np.ones(len(plan.relative_scale))
    one[0] = other
    assert "noise scales" in told(scaled(plan, one))


@pytest.mark.parametrize("method", [*SHARED, "clip_user"])
def test_statistics_share_the_noise_of_a_cell_in_one_ratio(method: str) -> None:
    """G-VERIFY: more noise for one statistic, and less for another, is not the method's."""
    plan = flights.plan(method=method, statistics=THREE, epsilon=5, uninformative="keep")
    cells = len(plan.released)
    factor = np.repeat([1.01, 1.0, 1.0], cells)
    assert "noise scales" in told(scaled(plan, factor))


@pytest.mark.parametrize("statistics", [("mean",), THREE])
def test_the_noise_of_clip_user_is_for_the_cells_that_users_are_kept_in(
    statistics: tuple[str, ...],
) -> None:
    """G-VERIFY: K of Clip-User's noise is that of who is kept, and no other number."""
    plan = flights.plan(
        method="clip_user", statistics=statistics, epsilon=0.5, uninformative="keep"
    )
    assert told(plan) == []
    kept = plan.parameters["kept"] > 0
    cells = int(np.bincount(plan.design.user[kept]).max())
    for other in (cells + 1, cells + 2, 2 * cells):
        assert told(scaled(plan, other / cells)) == ["noise scales"]
    one = np.ones(len(plan.relative_scale))
    one[-1] = 1.001
    assert told(scaled(plan, one)) == ["noise scales"]


def test_noise_of_clip_user_is_uniform_or_balanced_as_it_says() -> None:
    """G-VERIFY: balanced noise is not sold as the paper's, without its duals and its gap."""
    balanced = flights.plan(method="clip_user", settings={"noise": "balanced"}, epsilon=0.5)
    assert told(balanced) == []
    assert told(said(balanced, settings={})) == ["noise scales"]


@pytest.mark.parametrize("method", SPENDING)
def test_less_spent_than_was_asked_for_is_found(method: str) -> None:
    """G-VERIFY: a smaller epsilon than the request's, by larger scales, was not planned."""
    plan = flights.plan(method=method, epsilon=5, uninformative="keep")
    assert told(plan) == []
    if method != "user_clipped":
        assert "noise scales" in told(scaled(plan, 1.01))
        return
    half = {**plan.parameters, "ball": plan.parameters["ball"] // 2}
    less = replace(scaled(plan, 2.0), parameters=half, selection_scale=plan.selection_scale * 2)
    for one, wanted in ((plan, True), (less, False)):
        design = of_plan(one)
        found = scales_hold(Losses(design), Errors(design), one.to_document())
        assert found[0] == wanted


@pytest.mark.parametrize("method", ["levy", "quantile", "akmv"])
def test_selections_cost_as_much_as_noise(method: str) -> None:
    """G-VERIFY: certified intervals are not made narrower by selections that cost nothing."""
    plan = flights.plan(method=method, epsilon=5, uninformative="keep")
    lie = replace(scaled(plan, (1 + 2.0**-17) / 2), selection_scale=plan.selection_scale * 2.0**30)
    assert told(lie) == ["noise scales"]


def test_what_is_not_recomputed_is_said() -> None:
    """G-VERIFY: a verdict names what its own manifest leaves to the planner's word, and no more."""

    def sentences(**request: Any) -> str:  # noqa: ANN401
        plan = flights.plan(**{"uninformative": "keep", "epsilon": 5, **request})
        made = planned(plan).release(flights.records(), noise=shoal.Simulated(3))
        return "\n".join(shoal.verify(made.manifest).unverified)

    uniform = sentences(method="uniform")
    assert "shares its noise" not in uniform
    assert "jointly" not in uniform
    assert "how levy shares its noise" in sentences(method="levy")
    assert "jointly" in sentences(method="equalised", statistics=THREE)
    assert "jointly" in sentences(method="equalised", delta="1e-3")
    assert "is compared" in sentences(method="optimal", settings={"targets": "balanced"})
    assert "is compared" not in sentences(method="optimal")


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("least_sum", [False, True])
def test_the_ratio_of_a_joint_release_is_the_planners(*, gaussian: bool, least_sum: bool) -> None:
    """G-INDEPENDENT: two ways to the ratio of the moments' noise and to what it costs."""
    own = together(gaussian=gaussian, least_sum=least_sum)
    planned = queries._ratio(gaussian_noise=gaussian, least_sum=least_sum)
    assert own == pytest.approx(planned, rel=1e-12)


PLANNED = [
    *((method, request) for method in SHARED for request in WAYS.values()),
    *(("clip_user", WAYS[way]) for way in ("mean", "three")),
    *((method, WAYS["mean"]) for method in SPENDING),
    ("user_clipped", WAYS["gaussian"]),
]


@pytest.mark.parametrize(("method", "wanted"), PLANNED)
@settings(max_examples=settings().max_examples // 5)
@given(occupancy=occupancies.small, epsilon=st.sampled_from(["0.001", "1", "300"]))
def test_every_plan_has_the_scales_of_its_method(
    method: str, wanted: dict[str, Any], occupancy: shoal.Occupancy, epsilon: str
) -> None:
    """G-INDEPENDENT: on small occupancies, at any epsilon, within the planner's roundings."""
    amount = {} if "error" in wanted else {"epsilon": epsilon}
    try:
        plan = shoal.plan(
            occupancy,
            **{
                "bounds": flights.BOUNDS,
                "uninformative": "keep",
                "method": method,
                **wanted,
                **amount,
            },
        )
    except InputError:
        # An error that no lattice is fine enough for.
        return
    design = of_plan(plan)
    holds, found = scales_hold(Losses(design), Errors(design), plan.to_document())
    assert holds, found
