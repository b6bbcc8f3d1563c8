"""Every mechanism side by side, before any value is read: certificates and errors to expect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from shoal.cells.simulation.distributions import Normal
from shoal.cells.simulation.simulate import METHODS, check_occupancy, simulate
from shoal.data.value_lattice import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from shoal.cells.simulation.distributions import Distribution
    from shoal.cells.simulation.simulate import Settings, Simulation
    from shoal.data.occupancy import Occupancy
    from shoal.privacy.budget import Amount

# Records drawn in all when the number of repetitions is left to us.
_DRAWN = 3_000_000
_FEWEST, _MOST = 3, 200
# What is assumed of the values by default: a sixth of the width, a third of it between users.
_DEVIATION, _BETWEEN = 1 / 6, 1 / 3
_PLACE = 0.4


@dataclass(frozen=True, eq=False)
class Comparison:
    """Certificates and expected errors of several mechanisms, as `compare` found them.

    Attributes:
        assumed: The distribution that expected errors are for.
        simulation: Plans and expected errors, one row a method.
    """

    assumed: Distribution
    simulation: Simulation = field(repr=False)

    def table(self) -> pa.Table:
        """One row a method: noise, bias bound, worst case, expected error; medians over cells.

        Expected errors come with standard errors. Where a range is selected the noise scale is
        the largest possible, the worst case is the width, and `certified` is false.

        Returns:
            One row a method, errors in the value's unit.
        """
        rows = self.simulation.rows
        return pa.table(
            {
                "method": [row.method for row in rows],
                "epsilon": [row.epsilon for row in rows],
                "noise_scale": [float(np.median(row.plan.noise_scale)) for row in rows],
                "bias_bound": [float(np.median(row.plan.bias_bound)) for row in rows],
                "worst_case_error": [float(np.median(row.plan.worst_case_error)) for row in rows],
                "expected_error": [float(np.median(row.error)) for row in rows],
                "standard_error": [row.standard_error for row in rows],
                "certified": [row.plan.certified for row in rows],
            }
        )

    def __str__(self) -> str:
        """The table as text, with what was assumed."""
        head = (
            f"{'method':<22}{'worst case':>12}{'noise scale':>13}{'bias bound':>12}{'expected':>11}"
        )
        lines = [
            f"{row['method']:<22}{row['worst_case_error']:>12.4g}{row['noise_scale']:>13.4g}"
            f"{row['bias_bound']:>12.4g}{row['expected_error']:>11.4g}"
            for row in self.table().to_pylist()
        ]
        notes = [
            f"expected: mean absolute error under {self.assumed}",
            "worst case: certified for every data set; where a range is selected it is the width,",
            "and noise is in proportion to that range, at most what is shown",
        ]
        return "\n".join([head, *lines, *notes])


def compare(
    occupancy: Occupancy,
    *,
    bounds: Bounds | tuple[float, float],
    epsilon: Amount = 1.0,
    methods: Sequence[str | tuple[str, Settings]] = METHODS,
    assumed: Distribution | None = None,
    repetitions: int | None = None,
    seed: int = 0,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Comparison:
    """Worst-case and expected error of every mechanism for these counts, before a value is read.

    A worst case is the plan's certificate. An expected error is the mean absolute error on drawn
    values, where the expectation over the Laplace noise is in closed form
    (docs/theory/selection.md#scores).

    Args:
        occupancy: The public counts.
        bounds: Public range of the values, in their unit.
        epsilon: Total privacy loss.
        methods: Names, or pairs of a name and its settings.
        assumed: What values may look like; by default `Normal` around 0.4 of the width, with a
            deviation of a sixth of the width and a third of the variance between users. Never fit
            it to the records: that would cost privacy which nobody accounts.
        repetitions: Data sets to draw; by default as many as give about three million records.
        seed: Of the simulation.
        progress: Wraps the repetitions, to show how far they are.

    Returns:
        Certificates and expected errors of each method.

    Raises:
        InputError: An argument is not usable.

    Guarantees: G-SIMULATED.

    Example:
        >>> import shoal
        >>> counts = shoal.Occupancy.from_counts(range(40), ["all"] * 40, [1] * 39 + [61])
        >>> found = shoal.compare(counts, bounds=(0, 10), methods=["baseline", "adaptive"])
        >>> found.table()["method"].to_pylist(), found.table()["certified"].to_pylist()
        (['baseline', 'adaptive'], [True, False])
    """
    check_occupancy(occupancy)
    limits = Bounds.of(bounds)
    width = float(limits.width)
    values = (
        Normal(limits.lo + _PLACE * width, _DEVIATION * width, _BETWEEN)
        if assumed is None
        else assumed
    )
    records = int(occupancy.count.sum())
    few = min(max(_DRAWN // records, _FEWEST), _MOST)
    turns = few if repetitions is None else repetitions
    simulation = simulate(
        occupancy,
        values,
        bounds=limits,
        epsilon=epsilon,
        methods=methods,
        repetitions=turns,
        seed=seed,
        progress=progress,
    )
    return Comparison(values, simulation)
