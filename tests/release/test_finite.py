"""What can be drawn can be written down: no draw fails, whatever the values, before its charge."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import mean, trials, unbiased
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from tests.support import methods
from tests.support.loop import loop_over

pytestmark = pytest.mark.full

FAR = 1e50
# Ends of the 64-bit whole numbers that noise comes as, and of the lattice.
ENDS = (-(2**63), 1, 2**63 - 1)
WIDEST = ((-FAR, FAR), (0.0, 1e-100))


class Thrown(Simulated):
    """Noise that throws every number to one place, whatever it was."""

    def __init__(self, place: int) -> None:
        """Where to."""
        super().__init__(1)
        object.__setattr__(self, "place", place)

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """All there."""
        return [self.place for _ in steps]

    def add_gaussian(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """All there."""
        return [self.place for _ in steps]


def _finite(found: Any) -> bool:
    if isinstance(found, dict):
        return all(map(_finite, found.values()))
    if isinstance(found, list):
        return all(map(_finite, found))
    return not isinstance(found, float) or math.isfinite(found)


@loop_over("bounds", WIDEST)
@loop_over("name", methods.METHODS)
def test_every_number_that_can_be_drawn_can_be_written(
    name: str, bounds: tuple[float, float]
) -> None:
    """A draw whose document cannot be made would be free; there is none."""
    table = methods.tied(3, 14, 3)
    wanted = {**methods.METHODS[name], "bounds": bounds}
    try:
        plan = methods.plan(table, wanted, 4)
    except InputError:
        return
    users = shoal.Records(
        table, user="who", value="value", bounds=bounds, by="place", counts="public"
    )
    for place in ENDS:
        found = plan.release(users, noise=Thrown(place))
        assert _finite(json.loads(found.document))
        for confidence in (0.5, 1 - 1e-12):
            assert found.table(confidence).num_rows >= 3


@pytest.mark.parametrize("bounds", WIDEST)
@pytest.mark.parametrize("epsilon", ["1e-8"])
def test_means_of_one_cell_are_numbers(bounds: tuple[float, float], epsilon: object) -> None:
    """Without a ledger too, whether a call fails says nothing of the values."""
    users = np.arange(40) // 2
    for place in ENDS:
        for name in ("baseline", "worst_case_optimal", "levy", "quantile", "akmv", "adaptive"):
            values = np.linspace(*bounds, 40)
            try:
                found = getattr(mean, name)(
                    values, users, bounds=bounds, epsilon=epsilon, noise=Thrown(place)
                )
            except InputError:
                continue
            numbers = (found.value, *found.interval, *found.typical_interval, found.noise_scale)
            assert np.isfinite(numbers).all()


@loop_over("size", [2.0**-300, 1.0, 2.0**300])
@loop_over("place", ENDS)
def test_unbiased_means_are_numbers(size: float, place: int) -> None:
    """Whatever the size of the moment and the values, what is drawn can be written."""
    kinds: list[dict[str, Any]] = [
        {"method": "clipped_mean", "epsilon": "1e-6", "interval": (0, size), "bias": size},
        {"method": "symmetric_mean", "epsilon": 1, "delta": "1e-6"},
    ]
    for kind in kinds:
        try:
            plan = unbiased.plan(counts=3000, moment=unbiased.Moment(2, size), **kind)
        except InputError:
            continue
        for value in (-1.7e308, 0.0, 1.7e308):
            found = plan.release(np.full(3000, value), noise=Thrown(place))
            assert _finite(json.loads(found.document))


def _trial(name: str, study: trials.Experiment, domain: trials.Domain, epsilon: Any) -> trials.Plan:
    if name == "histogram":
        return study.histogram(domain, epsilon)
    if name == "questions":
        return study.ask().effect().means().plan(domain, epsilon)
    kind = trials.ClusterPrior(0.01, 10) if name == "cluster_prior" else name
    return study.table(domain, epsilon, mechanism=kind)


@loop_over("epsilon", ["1e-6", 1])
@loop_over("levels", [(-FAR, FAR), (0.0, FAR), (0.0, 1e-50), (-FAR, 0.0, FAR)])
@loop_over("name", ["cluster_prior", "uniform_prior", "best_table", "histogram", "questions"])
def test_trials_are_numbers(name: str, levels: tuple[float, ...], epsilon: Any) -> None:
    """A trial of outcomes as large as any can be written down, whatever is drawn."""
    study = trials.Experiment(np.arange(400) % 2, np.arange(400) // 100)
    outcome = np.array(levels)[np.arange(400) % len(levels)]
    for place in ENDS:
        try:
            plan = _trial(name, study, trials.Domain(levels), epsilon)
        except InputError:
            return
        found = plan.release(outcome, study, noise=Thrown(place))
        assert _finite(json.loads(found.document))


@pytest.mark.parametrize("high", [2.6e154, 1e51])
def test_no_refusal_is_a_free_look(high: float, tmp_path: Path) -> None:
    """Of neighbours, both are refused before a value is read, or both are charged."""
    for values in ([0.0, 0.0], [0.0, high], [high, high]):
        table = pa.table({"who": ["a", "a"], "place": ["x", "x"], "value": values})
        with pytest.raises(InputError, match="bound"):
            shoal.Records(
                table, user="who", value="value", by="place", bounds=(0, high), counts="public"
            )
    assert not list(tmp_path.iterdir())
