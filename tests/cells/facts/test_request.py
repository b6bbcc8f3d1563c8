"""Which cells are left out, and what parts of a request are refused."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.cells.mechanisms.weights import FINE
from shoal.errors import InputError
from tests.support.loop import loop_over

LONELY = shoal.Counts.from_counts(
    [*range(40), 0, *range(40)], [*["crowd"] * 40, "alone", *["other"] * 40], [3] * 81
)


def plan(counts: shoal.Counts = LONELY, **wanted: Any) -> shoal.Plan:
    """A plan with plain parts of a request."""
    return shoal.plan(
        counts,
        **{"method": "balanced", "bounds": (0, 10), "epsilon": 1, "min_users": 1, **wanted},
    )


@pytest.mark.parametrize("method", ["balanced", "equalised", "uniform"])
def test_uninformative_cells_are_left_out_and_the_others_gain(method: str) -> None:
    """No planned cell errs by half the width, and what they leave is used."""
    kept, dropped = plan(method=method, uninformative="keep"), plan(method=method)
    assert (kept.relative_error >= 0.5).any()
    assert dropped.status[dropped.counts.labels.index("alone")] == "uninformative"
    assert (dropped.relative_error < 0.5).all()
    better = {dropped.counts.labels[g]: e for g, e in zip(
        dropped.planned, dropped.worst_case_error, strict=True)}  # fmt: skip
    for g, error in zip(kept.planned, kept.worst_case_error, strict=True):
        label = kept.counts.labels[g]
        assert label == "alone" or better[label] <= error


def test_one_lonely_cell_does_not_take_the_others_with_it() -> None:
    """Equalised shares the worst error; only the cell that causes it goes."""
    assert plan(method="equalised").status.count("uninformative") == 1


def test_refuse_names_a_uninformative_cell() -> None:
    """The error says how many and which."""
    with pytest.raises(InputError, match="1 cells are uninformative, such as 'alone'"):
        plan(uninformative="refuse")


def test_public_rules_leave_cells_out() -> None:
    """Cells with too few users or records are not released and cost nothing."""
    ruled = plan(min_users=2)
    assert ruled.status[ruled.counts.labels.index("alone")] == "too few users"
    ruled = plan(min_records=4)
    assert ruled.status[ruled.counts.labels.index("alone")] == "too few records"
    assert ruled.exact_epsilon <= 1


def test_nothing_left_is_an_error() -> None:
    """A plan without cells is refused with what to do."""
    with pytest.raises(InputError, match=r"the plan would have no cell.*raise epsilon"):
        plan(epsilon=0.001)


@loop_over(
    ("wanted", "message"),
    [
        ({"epsilon": 0}, "epsilon is 0; allowed: a finite number above 0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": "much"}, "epsilon is 'much'"),
        ({"epsilon": 2**44}, "give 1e-09 to 1e\\+06"),
        ({"bounds": (0, 1e-305)}, "bounds are"),
        ({"epsilon": None}, "epsilon and error are both missing"),
        ({"error": 1.0}, "epsilon and error are both given"),
        ({"epsilon": None, "error": 5.0}, "less than 5, the error of guessing"),
        ({"epsilon": None, "error": 1e-9}, "more than a tick"),
        ({"method": "magic"}, "method is 'magic'; allowed: one of balanced, equalised, uniform"),
        ({"uninformative": "hide"}, "uninformative is 'hide'; allowed: one of drop, keep, refuse"),
        ({"statistics": ["median"]}, "method is for mean, variance"),
        ({"bounds": (10, 0)}, "bounds are \\(10, 0\\)"),
        ({"bounds": 3}, "bounds is 3"),
        ({"min_users": 0}, "min_users is 0"),
        ({"min_records": 1.5}, "min_records is 1.5"),
        ({"weights": {"nowhere": 2}}, "the cell 'nowhere', which does not exist"),
        ({"weights": {"crowd": 0}}, "weight of cell 'crowd' is 0"),
        ({"weights": {"crowd": 2}, "method": "uniform"}, "method uniform takes no weights"),
        ({"tick_bits": 0}, "tick bits"),
        ({"bounds": (1e15, 1e15 + 1)}, "tick bits are too fine"),
    ],
)
def test_bad_wishes_are_refused_in_one_line(wanted: dict[str, Any], message: str) -> None:
    """Each says what was got, what is allowed and what to do."""
    with pytest.raises(InputError, match=message) as caught:
        plan(**wanted)
    assert "\n" not in str(caught.value)


def test_counts_are_needed() -> None:
    """Records or arrays in its place are refused by type."""
    with pytest.raises(InputError, match="counts has the type list"):
        shoal.plan([], method="balanced", bounds=(0, 1), epsilon=1)  # type: ignore[arg-type]


def test_losses_never_wrap() -> None:
    """Noise far too small is refused, not accounted as nothing."""
    plain = plan(uninformative="keep")
    for scale, bits in itertools.product((1e-300, 1e-12), (40, 60)):
        small = np.full(len(plain.planned), scale)
        with pytest.raises(InputError, match=r"lattice|too small"):
            _ = replace(plain, decision=replace(plain.decision, scale=small, bits=bits)).epsilon


@pytest.mark.parametrize("method", ["quantile", "levy", "adaptive", "baseline"])
def test_noise_over_a_selected_range_has_room_on_the_lattice(method: str) -> None:
    """A narrow range means many steps; what might not fit is refused beforehand."""
    made = plan(method=method, uninformative="keep")
    top = 1 << (made.lattice.bits + FINE)
    zoom = made.decision.method.range.largest_zoom(made.parameters, top)
    assert (zoom == 1) is (method == "baseline")

    def with_noise(scale: float) -> shoal.Plan:
        wide = np.full(len(made.decision.scale), scale)
        return replace(made, decision=replace(made.decision, scale=wide, bits=50))

    # Twice the least scale at which numbers over the whole range fit.
    if zoom > 2:
        with pytest.raises(InputError, match="lattice"):
            with_noise(2.0**-10)
    assert with_noise(2.0**-10 * zoom).decision.bits == 50
