"""Randomised experiments with private outcomes and valid effects.

`Experiment` holds the public columns. `Experiment.forecast` says before the experiment what each
kind of release would tell; `table` plans a private response for every unit, `histogram` noisy
counts, and `ask` answers to questions that are known beforehand, whose noise is the least. A plan's
`release` reads the outcomes once. See `docs/explanation/trials.md`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.intervals import detectable, power
    from shoal.trials.cluster_prior import ClusterPrior
    from shoal.trials.effects import Effect, Effects, Inference
    from shoal.trials.expected import Expected
    from shoal.trials.experiment import Experiment
    from shoal.trials.forecasting import Forecast, forecast
    from shoal.trials.plan import Plan
    from shoal.trials.questions.answers import Answer, Answers
    from shoal.trials.questions.ask import Questions
    from shoal.trials.release import Release
    from shoal.trials.space import Space

# Names are loaded when first used, so that the command line starts at once.
_HOME = {
    "Answer": "shoal.trials.questions.answers",
    "Answers": "shoal.trials.questions.answers",
    "ClusterPrior": "shoal.trials.cluster_prior",
    "Effect": "shoal.trials.effects",
    "Effects": "shoal.trials.effects",
    "Expected": "shoal.trials.expected",
    "Experiment": "shoal.trials.experiment",
    "Forecast": "shoal.trials.forecasting",
    "Inference": "shoal.trials.effects",
    "Plan": "shoal.trials.plan",
    "Questions": "shoal.trials.questions.ask",
    "Release": "shoal.trials.release",
    "Space": "shoal.trials.space",
    "detectable": "shoal.intervals",
    "forecast": "shoal.trials.forecasting",
    "power": "shoal.intervals",
}

__all__ = [
    "Answer",
    "Answers",
    "ClusterPrior",
    "Effect",
    "Effects",
    "Expected",
    "Experiment",
    "Forecast",
    "Inference",
    "Plan",
    "Questions",
    "Release",
    "Space",
    "detectable",
    "forecast",
    "power",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _HOME:
        raise AttributeError(f"module 'shoal.trials' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
