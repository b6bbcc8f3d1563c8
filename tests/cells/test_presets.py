"""Methods by name: the parts they stand for, their settings, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

import shoal
from shoal.cells.contributions.averaged_arrays import AveragedArrays
from shoal.cells.presets import METHODS, PRESETS, parts_of, settings_of
from shoal.errors import InputError
from tests.support import methods, occupancies
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

# Of each method: contributions, range and allocation, written out apart from the code.
PARTS = {
    "balanced": ("every record", "public", "balanced"),
    "equalised": ("every record", "public", "equalised"),
    "uniform": ("every record", "public", "uniform"),
    "clip_user": ("cells left out", "public", "uniform"),
    "optimal": ("parts of weights", "public", "linear program"),
    "baseline": ("every record", "public", "balanced losses"),
    "array_averaging": ("arrays averaged", "public", "balanced losses"),
    "opt_array_averaging": ("arrays averaged", "public", "balanced losses"),
    "worst_case_optimal": ("truncated at a threshold", "public", "balanced losses"),
    "levy": ("arrays clipped", "Levy's interval, per cell", "balanced losses"),
    "quantile": ("arrays clipped", "pair of quantiles, per cell", "balanced losses"),
    "akmv": ("one sum a user", "threshold of sums, per cell", "balanced losses"),
    "adaptive": ("capped counts", "one interval for all cells", "balanced losses"),
    "user_clipped": (
        "nearly full counts",
        "a centre and a radius of users' vectors",
        "balanced losses",
    ),
}


def test_every_method_has_the_parts_that_it_should() -> None:
    """As the papers define them."""
    assert {
        method: (parts.contributions.title, parts.range.title, parts.allocation.title)
        for method in METHODS
        if (parts := parts_of(method))
    } == PARTS


def test_settings_put_other_parts_in_place() -> None:
    """Noise, targets, range, objective; and the parts' own settings."""
    assert (
        parts_of("clip_user", {"noise": "balanced"}).allocation == parts_of("balanced").allocation
    )
    assert parts_of("optimal", {"range": "selected"}).range == parts_of("adaptive").range
    assert parts_of("optimal") != parts_of("optimal", {"targets": "balanced"})
    own = parts_of("array_averaging", {"cap": "minimax"})
    assert own == parts_of("opt_array_averaging")
    assert own.contributions == AveragedArrays("minimax", "best_fit")
    # The same parts, and another name in plans and manifests.
    assert own.name != parts_of("opt_array_averaging").name


@loop_over(
    "name",
    methods.METHODS,
)
def test_a_plan_has_the_parts_of_its_request(name: str) -> None:
    """What is planned, drawn and written down follows from one description."""
    wanted = methods.METHODS[name]
    plan = methods.plan(methods.tied(), wanted)
    delta = Fraction(wanted.get("delta", 0))
    assert plan.parts == parts_of(wanted["method"], wanted.get("settings"), delta)
    assert plan.mechanism.contributions == plan.parts.contributions
    assert plan.mechanism.range == plan.parts.range
    assert plan.to_document()["mechanism"]["name"] == plan.parts.name
    assert (plan.duals is not None) == plan.parts.allocation.proved
    assert plan.certified == (not plan.parts.selects)
    assert plan.gaussian in plan.parts.noise.gaussian


def test_unknown_methods_and_settings_are_refused() -> None:
    """In words, wherever the method comes from."""
    for method, settings in (("x", {}), ("akmv", {"cap": 3}), ("levy", {"gamma": 2})):
        with pytest.raises(InputError):
            parts_of(method, settings)
    with pytest.raises(InputError, match="delta with the method levy"):
        shoal.plan(occupancies.sparse(0), bounds=(0, 1), epsilon=1, method="levy", delta="1e-6")


def test_every_default_is_a_value_that_can_be_given() -> None:
    """Defaults that are said aloud change nothing."""
    for method in PRESETS:
        assert parts_of(method, settings_of(method)) == parts_of(method)
