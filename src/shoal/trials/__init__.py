"""Randomised experiments with private outcomes and valid effects.

`Experiment` holds the public columns. `Experiment.forecast` says before the experiment what each
kind of release would tell; `table` plans a private response for every unit, `histogram` noisy
counts, and `ask` answers to questions that are known beforehand, whose noise is the least. A plan's
`release` reads the outcomes once. See `docs/experiments.md`.
"""

from shoal.intervals import detectable, power
from shoal.trials.caps import Caps, caps
from shoal.trials.cluster_prior import ClusterPrior
from shoal.trials.columns_of_a_file import read
from shoal.trials.domain import Domain
from shoal.trials.expected import Expected
from shoal.trials.experiment import Experiment
from shoal.trials.forecasting import Forecast, forecast
from shoal.trials.plan import Plan, Release
from shoal.trials.questions.ask import Questions
from shoal.trials.results import Answer, Answers, Effect, Effects, Inference

__all__ = [
    "Answer",
    "Answers",
    "Caps",
    "ClusterPrior",
    "Domain",
    "Effect",
    "Effects",
    "Expected",
    "Experiment",
    "Forecast",
    "Inference",
    "Plan",
    "Questions",
    "Release",
    "caps",
    "detectable",
    "forecast",
    "power",
    "read",
]
