"""What leaves a trial's mechanism: responses of units, or numbers of clusters."""

from __future__ import annotations

from typing import TypeAlias

from shoal.trials.aggregate_release import AggregateRelease
from shoal.trials.unit_release import UnitRelease

Released: TypeAlias = UnitRelease | AggregateRelease
