"""User-level differentially private statistics.

The way of the data: a `plan` of `Records` can be judged before anything private is read,
`Plan.release` carries it out against a `Ledger`, and `verify` recomputes every claim of the
manifest. Counts are private unless they are declared public: a plan then opens no file, and takes a
list of cells and about how many users there are. Of public counts it reads the `Counts`.

**What comes in**: `Records`, `timeslot`, `hour_of_day`, `hexagon`, `Counts`, `Bounds`; lists of
cells, `hexagons`. **What is released**: `plan`, `Plan`, `Release`, `Simulated`; in one call,
`summarize`, `effects`; of one cell in memory, `mean`; of experiments, `trials`; without bias,
`unbiased`; from a file, `load`.
**Its error**: `compare`, `simulate`, `Normal`; whatever one does, `bounds`. **What it costs**:
`Ledger`. **Whether it is true**: `verify`. **What it looks like**: `picture`, `report`.
**Its papers**: `dossier`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from shoal import bounds, mean, trials, unbiased
    from shoal.cells.comparisons.assumptions import Normal
    from shoal.cells.comparisons.simulation import compare, simulate
    from shoal.cells.plan import Plan, Release
    from shoal.data.cell_rules import (
        bins,
        date,
        day,
        hexagon,
        hour_of_day,
        month,
        quarter,
        timeslot,
        week,
        weekday,
        year,
    )
    from shoal.data.counts import Counts
    from shoal.data.key_lists import hexagons
    from shoal.data.records import Records
    from shoal.data.value_lattice import Bounds
    from shoal.dossiers import dossier
    from shoal.errors import ShoalError
    from shoal.one_call import effects, summarize
    from shoal.pictures import picture
    from shoal.planning import load, plan
    from shoal.privacy.ledger import Ledger
    from shoal.privacy.noise import Simulated
    from shoal.report_page import report
    from shoal.verification.verify import verify

# Names are loaded when first used, so that `import shoal` and the command line start at once.
_HOME = {
    "Bounds": "shoal.data.value_lattice",
    "Ledger": "shoal.privacy.ledger",
    "Normal": "shoal.cells.comparisons.assumptions",
    "Counts": "shoal.data.counts",
    "Plan": "shoal.cells.plan",
    "Records": "shoal.data.records",
    "Release": "shoal.cells.plan",
    "ShoalError": "shoal.errors",
    "Simulated": "shoal.privacy.noise",
    "bins": "shoal.data.cell_rules",
    "compare": "shoal.cells.comparisons.simulation",
    "date": "shoal.data.cell_rules",
    "day": "shoal.data.cell_rules",
    "dossier": "shoal.dossiers",
    "hexagon": "shoal.data.cell_rules",
    "hexagons": "shoal.data.key_lists",
    "effects": "shoal.one_call",
    "hour_of_day": "shoal.data.cell_rules",
    "summarize": "shoal.one_call",
    "month": "shoal.data.cell_rules",
    "picture": "shoal.pictures",
    "load": "shoal.planning",
    "plan": "shoal.planning",
    "quarter": "shoal.data.cell_rules",
    "report": "shoal.report_page",
    "simulate": "shoal.cells.comparisons.simulation",
    "timeslot": "shoal.data.cell_rules",
    "verify": "shoal.verification.verify",
    "week": "shoal.data.cell_rules",
    "weekday": "shoal.data.cell_rules",
    "year": "shoal.data.cell_rules",
}
_ROOMS = ("bounds", "mean", "trials", "unbiased")

__all__ = [
    "Bounds",
    "Counts",
    "Ledger",
    "Normal",
    "Plan",
    "Records",
    "Release",
    "ShoalError",
    "Simulated",
    "bins",
    "bounds",
    "compare",
    "date",
    "day",
    "dossier",
    "effects",
    "hexagon",
    "hexagons",
    "hour_of_day",
    "load",
    "mean",
    "month",
    "picture",
    "plan",
    "quarter",
    "report",
    "simulate",
    "summarize",
    "timeslot",
    "trials",
    "unbiased",
    "verify",
    "week",
    "weekday",
    "year",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name == "__version__":
        return import_module("importlib.metadata").version("shoal")
    if name in _ROOMS:
        return import_module(f"shoal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
