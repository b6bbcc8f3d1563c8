"""The second opinion on a largest error: of certified errors again, of forecasts said not to be."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from tests.support import flights
from tests.support.verdicts import failed_claims, rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    Manifest = dict[str, Any]

pytestmark = pytest.mark.unit

FORECAST = "that the typical errors of released cells, which are simulated, are within max_error"


def manifest(**wanted: Any) -> Manifest:  # noqa: ANN401
    """As if the noise of a plan with a largest error had been real."""
    source = flights.records()
    plan = shoal.plan(
        source.occupancy(), bounds=flights.BOUNDS, source=source.describe(), min_users=2,
        **{"epsilon": 1, "max_error": "30%", **wanted},
    )  # fmt: skip
    made = plan.release(source, noise=shoal.Simulated(5)).manifest
    return {**made, "simulation": False}


def after(made: Manifest, change: Callable[[Manifest], object]) -> list[str]:
    """What fails after a change by somebody who signs the request anew."""
    changed = copy.deepcopy(made)
    change(changed)
    rekey(changed)
    return failed_claims(changed)


def asking(**wanted: object) -> Callable[[Manifest], object]:
    """Other parts of a request."""

    def change(made: Manifest) -> None:
        made["plan"]["request"].update(wanted)

    return change


@pytest.mark.parametrize("method", ["balanced", "optimal", "clip_user", "user_clipped", "adaptive"])
def test_what_cannot_be_recomputed_is_said(method: str) -> None:
    """G-VERIFY: forecasts are in the list of what is left to the planner's word; others hold."""
    made = manifest(method=method, max_error="49%")
    assert after(made, lambda _: None) == []
    selects = method in ("user_clipped", "adaptive")
    assert (FORECAST in shoal.verify(made).unverified) == selects


@pytest.mark.parametrize("method", ["balanced", "optimal", "clip_user"])
def test_a_released_cell_with_a_larger_error_is_found(method: str) -> None:
    """G-LARGEST: certified errors are compared with the largest that was asked for, again."""
    made = manifest(method=method, max_error="49%")
    largest = max(made["plan"]["claims"]["worst_case_error"]) / 700
    for part, failed in ((1.001, []), (0.999, ["public rules"])):
        assert after(made, asking(max_error=largest * part)) == failed


@pytest.mark.parametrize("most", [0, -1, 0.5, 0.7, "5%", True])
def test_a_largest_error_that_no_plan_takes_is_found(most: object) -> None:
    """G-VERIFY: by the schema, or by what goes together."""
    assert after(manifest(), asking(max_error=most)) != []


def test_a_largest_error_goes_with_epsilon_alone() -> None:
    """G-VERIFY: not with what happens to uninformative cells."""
    for word in ("keep", "refuse"):
        made = manifest()
        assert after(made, asking(uninformative=word)) == ["within what was asked for"]


def test_a_cell_is_left_out_by_the_rule_that_was_asked_for() -> None:
    """G-VERIFY: for a largest error only if there is one, else as uninformative."""
    limited = manifest(method="balanced", max_error=90)
    plain = manifest(method="balanced", epsilon=0.25, max_error=None)
    for made, word, other in (
        (limited, "error too large", "uninformative"),
        (plain, "uninformative", "error too large"),
    ):
        assert word in made["plan"]["status"]
        assert after(made, lambda _: None) == []
        status = [other if each == word else each for each in made["plan"]["status"]]
        made["plan"]["status"] = status
        assert after(made, lambda _: None) == ["public rules"]
