"""Hand-written lies about manifests of every kind, each told wherever it is one.

Cells by every method and statistic, trials by every mechanism, unbiased means: half the epsilon,
one bit less noise, no gap, a phantom cell, a key twice, NaN, another encoding, an unknown field,
and so on; the lists are in `tests/evidence/lies_*.py`. Lies about what was asked for are also told
with the request's key made to fit. No lie may pass, but those in fields that the verdict itself
lists as unproven, which are named below.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

import shoal
from shoal.errors import ShoalError
from tests.evidence import lies_cells, lies_common, lies_means, lies_trials, specimens
from tests.evidence.finding import Outcome
from tests.evidence.lies_kit import NotHereError
from tests.evidence.unproven import signed, unproven

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.evidence.finding import Progress
    from tests.evidence.lies_kit import Document

    Lie = tuple[str, str, Callable[[Document], bytes]]

NAME = "lies about manifests"
PROMISES = ("G-VERIFY", "G-INDEPENDENT")
UNIT = "lies"
FAMILIES = {"cells": lies_cells.LIES, "trial": lies_trials.LIES, "unbiased mean": lies_means.LIES}


def every_lie() -> list[Lie]:
    """Family (or none for all), name, and how the bytes are made from a true document."""
    found: list[Lie] = []
    for family, lies in (("", lies_common.GUARANTEE), *FAMILIES.items()):
        for name, change in lies.items():
            found.append((family, name, _written(change)))
    found += [("", name, write) for name, write in lies_common.FILES.items()]
    return found


FULL, REDUCED, PARTS = 320, 320, 2


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Tell lies, each about every manifest that it fits; of the reduced run, about two of each."""
    true = specimens.manifests(folder)
    return Outcome(size)
