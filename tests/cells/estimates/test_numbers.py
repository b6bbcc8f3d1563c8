"""What noisy lattice numbers stand for: values, ranges and error bars that belong together."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.weights import FINE
from shoal.data.aggregate import Aggregate
from tests.support.tape import Tape

BOUNDS = (0.0, 100.0)
# One user with a quarter of the records: the ranges of the others are five times as wide.
RECORDS = np.array([20] + [4] * 15)
RANGES = np.linspace(0, 0.999, 21).tolist()
METHODS: dict[str, tuple[str, dict[str, str | float]]] = {
    "user_clipped": ("user_clipped", {}),
    "adaptive": ("adaptive", {}),
    "levy": ("levy", {}),
    "quantile": ("quantile", {}),
    "akmv": ("akmv", {}),
    "optimal": ("optimal", {"range": "selected"}),
}


def records(values: NDArray[np.float64], cells: int = 1) -> shoal.Records:
    """Records of these values; users lie in the cells in turn, each in one."""
    user = np.repeat(np.arange(len(RECORDS)), RECORDS)
    columns = {"user": user, "cell": user % cells, "value": values}
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    return shoal.Records(
        table, user="user", value="value", by="cell", bounds=BOUNDS, counts="public"
    )


def planned(name: str, of: shoal.Records, epsilon: float) -> shoal.Plan:
    """A plan of one of the mechanisms that select ranges."""
    method, settings = METHODS[name]
    return shoal.plan(
        of.counts(),
        bounds=BOUNDS,
        epsilon=epsilon,
        method=method,
        settings=settings,
        uninformative="keep",
    )


def exactly(plan: Facts, sums: Aggregate, part: float) -> Estimates:
    """The numbers with the range at this part of the candidates, without noise."""
    drawn = draw(plan, sums, Tape(part=part, rise=0))
    return Estimates.of(plan, *drawn)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("level", BOUNDS)
def test_no_value_without_noise_is_further_off_than_its_bias_bound(name: str, level: float) -> None:
    """The value that is published, moved into its range, with every range forced."""
    of = records(np.full(RECORDS.sum(), level))
    plan, sums = planned(name, of, 40), of.aggregate()[1]
    for part in RANGES:
        numbers = exactly(plan, sums, part)
        assert (np.abs(numbers.value - level) <= numbers.bias_bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("cells", [1, 3])
def test_values_lie_in_their_typical_intervals(name: str, cells: int) -> None:
    """And these in the certified ones, whatever range and noise come up."""
    random = np.random.default_rng(5)
    of = records(100 * random.random(RECORDS.sum()), cells)
    sums = of.aggregate()[1]
    for epsilon in (1, 400):
        plan = planned(name, of, epsilon)
        for part in RANGES[::4]:
            before = exactly(plan, sums, part)
            # Also noise of many scales, which hardly ever comes up.
            for away in (-30, -5, 0, 5, 30):
                steps = [x + (away << plan.decision.bits) for x in before.steps]
                numbers = Estimates.of(plan, steps, before.chosen)
                (low, high), near = numbers.intervals(0.9), numbers.typical_intervals(0.9)
                inside = (low, near[0], numbers.value, near[1], high)
                assert all((a <= b).all() for a, b in pairwise(inside))


def test_estimates_beyond_the_range_of_the_heaviest_user_verify() -> None:
    """Means of lighter users carry an estimate out of it, and there it stays."""
    of = records(np.where(np.repeat(np.arange(len(RECORDS)), RECORDS) == 0, 20.0, 90.0))
    plan, beyond = planned("adaptive", of, 40), 0
    for seed in range(8):
        manifest = plan.release(of, noise=shoal.Simulated(seed)).record
        failed = [each.claim for each in shoal.verify(manifest).checks if not each.holds]
        assert failed == ["noise of the operating system"]
        result = manifest["results"][0]
        low, high = (end / 2 ** (plan.lattice.bits + FINE) * 100 for end in result["range"])
        beyond += not low <= result["value"] <= high
    assert beyond
