"""Paper 004: all studies."""

from __future__ import annotations

from shoal_studies.study import Study
from shoal_studies.unbiased_distributions import DISTRIBUTIONS
from shoal_studies.unbiased_regimes import REGIMES
from shoal_studies.unbiased_releases import RELEASES
from shoal_studies.unbiased_trade_off import TRADE_OFF

FIGURES: tuple[Study, ...] = (TRADE_OFF, RELEASES, DISTRIBUTIONS, REGIMES)
