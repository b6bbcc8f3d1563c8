"""The lattice: in range, monotone, within half a tick, and refused where floats are too coarse."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import InputError

bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(
    lambda p: Bounds(p[0], p[0] + p[1])
)


def _lattice(pair: Bounds) -> Lattice | None:
    try:
        return Lattice(pair)
    except InputError:
        return None


lattices = bounds.map(_lattice).filter(lambda found: found is not None)


@given(lattice=lattices, share=st.floats(0, 1))
def test_rounding_stays_within_its_bound(lattice: Lattice, share: float) -> None:
    """|value of the tick - clipped value| <= U * rounding, in exact arithmetic."""
    lo, hi = lattice.bounds.lo, lattice.bounds.hi
    x = float(np.clip(lo + share * (hi - lo), lo, hi))
    tick = int(lattice.ticks(np.array([x]))[0])
    stands_for = Fraction(lo) + lattice.bounds.width * Fraction(tick, 2**lattice.bits)
    assert abs(stands_for - Fraction(x)) <= lattice.bounds.width * lattice.rounding


@given(lattice=lattices, values=st.lists(st.floats(allow_nan=False), min_size=2))
def test_ticks_are_in_range_and_monotone(lattice: Lattice, values: list[float]) -> None:
    """Whatever the value, 0 <= tick <= 2^bits; bounds map to the ends."""
    ticks = lattice.ticks(np.sort(np.array(values)))
    assert ticks.min() >= 0
    assert ticks.max() <= 2**lattice.bits
    assert (np.diff(ticks) >= 0).all()
    ends = lattice.ticks(np.array([lattice.bounds.lo, lattice.bounds.hi]))
    assert ends.tolist() == [0, 2**lattice.bits]


@given(lattice=lattices, up=st.integers(0, 2**70), down=st.integers(1, 2**70))
def test_values_are_rounded_once(lattice: Lattice, up: int, down: int) -> None:
    """Lo + U up/down, as Python's exact fractions round it."""
    exact = Fraction(lattice.bounds.lo) + lattice.bounds.width * Fraction(up, down)
    assert lattice.value(up, down) == float(exact)


@pytest.mark.parametrize("bits", [0, 25, 2.0, True])
def test_bad_bits(bits: object) -> None:
    """1 to 24 whole bits."""
    with pytest.raises(InputError, match="tick bits"):
        Lattice(Bounds(0, 1), bits)


FAR = [(0, 1.01e50), (-1.01e50, 0), (0, 9e299)]
NEAR = [(0, 1e-101), (0, 1e-280), (0, 5e-324)]


@pytest.mark.parametrize(
    "pair",
    [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), (True, 2), ("0", 1), *FAR, *NEAR],
)
def test_bad_bounds(pair: tuple[float, float]) -> None:
    """Two finite numbers, the lower one first, as far as sums and as near as squares reach."""
    words = {**dict.fromkeys(FAR, r"1e\+50"), **dict.fromkeys(NEAR, "apart")}
    with pytest.raises(InputError, match=words.get(pair, "finite number")):
        Bounds(*pair)


@pytest.mark.parametrize(("lo", "bits"), [(1e12, 20), (2.0**43, 1), (-1e12, 20), (2.0**30, 13)])
def test_ticks_are_far_coarser_than_the_numbers_near_the_bounds(lo: float, bits: int) -> None:
    """With fewer than 2^10 numbers in a tick, rounding could pass its stated bound."""
    with pytest.raises(InputError, match="tick bits"):
        Lattice(Bounds(lo, lo + 1), bits)
    assert Lattice(Bounds(2.0**30, 2.0**30 + 1), 12).bits == 12


def test_single_precision_moves_no_threshold_by_more_than_half_a_tick() -> None:
    """It has 0.1 as a slightly larger number; of seconds since 1970 it has every 128th."""
    assert Lattice(Bounds(0, 1)).compared(0.1) == float(np.float32(0.1)) > 0.1
    second = 1.7e9 + 50_001
    assert Lattice(Bounds(1.7e9, 1.7e9 + 86_400)).compared(second) == second
