"""Paper 004: all studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.studies.unbiased_distributions import DISTRIBUTIONS
from shoal.studies.unbiased_regimes import REGIMES
from shoal.studies.unbiased_releases import RELEASES
from shoal.studies.unbiased_trade_off import TRADE_OFF

if TYPE_CHECKING:
    from shoal.studies.study import Study

FIGURES: tuple[Study, ...] = (TRADE_OFF, RELEASES, DISTRIBUTIONS, REGIMES)
