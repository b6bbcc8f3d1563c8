"""User-level differentially private statistics.

The way of the data: `Records` (private) are counted into an `Occupancy` (public), a `plan` is made
from it and can be judged before any value is read, `Plan.release` carries it out against a
`Ledger`, and `verify` recomputes every claim of the manifest.

**What comes in**: `Records`, `timeslot`, `hour_of_day`, `hexagon`, `Occupancy`, `Bounds`.
**What is released**: `plan`, `Plan`, `Release`, `Simulated`; of one cell at once, `mean`; of
experiments, `trials`; without bias, `unbiased`.
**What it will err**: `compare`, `simulate`, `Normal`; whatever one does, `bounds`.
**What it costs**: `Ledger`.
**Whether it is true**: `verify`.
**What it looks like**: `picture`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal import bounds, mean, trials, unbiased
    from shoal.accounting.ledger import Ledger
    from shoal.errors import ShoalError
    from shoal.mechanisms.noise import Simulated
    from shoal.records.cells import hexagon, hour_of_day, timeslot
    from shoal.records.lattice import Bounds
    from shoal.records.occupancy import Occupancy
    from shoal.records.records import Records
    from shoal.release.plan import Plan, plan
    from shoal.release.release import Release
    from shoal.report.pictures import picture
    from shoal.simulation.compare import compare
    from shoal.simulation.distributions import Normal
    from shoal.simulation.simulate import simulate
    from shoal.verification import verify

# Names are loaded when first used, so that `import shoal` and the command line start at once.
_HOME = {
    "Bounds": "shoal.records.lattice",
    "Ledger": "shoal.accounting.ledger",
    "Normal": "shoal.simulation.distributions",
    "Occupancy": "shoal.records.occupancy",
    "Plan": "shoal.release.plan",
    "Records": "shoal.records.records",
    "Release": "shoal.release.release",
    "ShoalError": "shoal.errors",
    "Simulated": "shoal.mechanisms.noise",
    "compare": "shoal.simulation.compare",
    "hexagon": "shoal.records.cells",
    "hour_of_day": "shoal.records.cells",
    "picture": "shoal.report.pictures",
    "plan": "shoal.release.plan",
    "simulate": "shoal.simulation.simulate",
    "timeslot": "shoal.records.cells",
    "verify": "shoal.verification",
}
_ROOMS = ("bounds", "mean", "trials", "unbiased")

__all__ = [
    "Bounds",
    "Ledger",
    "Normal",
    "Occupancy",
    "Plan",
    "Records",
    "Release",
    "ShoalError",
    "Simulated",
    "bounds",
    "compare",
    "hexagon",
    "hour_of_day",
    "mean",
    "picture",
    "plan",
    "simulate",
    "timeslot",
    "trials",
    "unbiased",
    "verify",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load a public name from its home."""
    if name in _ROOMS:
        return import_module(f"shoal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
