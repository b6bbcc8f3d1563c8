"""Means of unbounded values: unbiased, or with a bias you choose, user-level private.

Values need no public range, only a public bound on a central moment (`Moment`). Bias does not
average out over many releases, so these estimators say how much they have: none, or at most a
budget. Each function plans from public facts and releases; `plan` alone shows the certificates
before any value is read.

- `clipped_mean`: (epsilon, 0); a bias within a budget; needs an interval that holds the mean.
- `symmetric_mean`: (epsilon, delta); unbiased for symmetric distributions given that an estimate is
  released; needs no interval.

Example:
    >>> import numpy as np
    >>> values = np.random.default_rng(1).normal(50, 10, 5000)
    >>> plan = plan("symmetric_mean", 5000, moment=Moment(2, 10), epsilon=1, delta=1e-6)
    >>> plan.bias_bound, plan.rmse_bound < 0.3
    (0.0, True)
    >>> abs(plan.release(values).value - 50) < 3
    True
"""

from shoal.means.plan import UnbiasedEstimate, UnbiasedPlan
from shoal.means.planner import clipped_mean, plan, symmetric_mean
from shoal.means.recommend import Recommendation, recommend
from shoal.theory.clipping import Moment

__all__ = [
    "Moment",
    "Recommendation",
    "UnbiasedEstimate",
    "UnbiasedPlan",
    "clipped_mean",
    "plan",
    "recommend",
    "symmetric_mean",
]
