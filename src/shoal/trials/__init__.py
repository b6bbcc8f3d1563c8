"""Randomised experiments with private outcomes and valid effects.

`BestTable`, `UniformPrior`, `ClusterDP` and `ClusterFree` replace the outcome of every unit by a
private one; `NoisyHorvitzThompson` and `NoisyHistogram` release numbers of clusters. Each has
`privatize`, whose result has a table, effects with intervals, and a manifest. `plan` says before
the experiment what error each will have. `Questions` are effects, means and regressions that are
known beforehand: their noise is the least. See `docs/explanation/trials.md`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.data.outcome_space import Space
    from shoal.trials.effects import Effect, Inference
    from shoal.trials.expected import Expected
    from shoal.trials.forecast import TrialPlan, plan
    from shoal.trials.mechanisms.aggregates import NoisyHistogram, NoisyHorvitzThompson
    from shoal.trials.mechanisms.outcomes import ClusterDP, ClusterFree, UniformPrior
    from shoal.trials.mechanisms.table import BestTable
    from shoal.trials.questions.plan import QuestionsPlan
    from shoal.trials.questions.questions import Questions
    from shoal.trials.questions.result import PrivateAnswers
    from shoal.trials.result import PrivateTrial
    from shoal.trials.student import detectable, power

# Names are loaded when first used, so that the command line starts at once.
_HOME = {
    "BestTable": "shoal.trials.mechanisms.table",
    "ClusterDP": "shoal.trials.mechanisms.outcomes",
    "ClusterFree": "shoal.trials.mechanisms.outcomes",
    "Effect": "shoal.trials.effects",
    "Expected": "shoal.trials.expected",
    "Inference": "shoal.trials.effects",
    "NoisyHistogram": "shoal.trials.mechanisms.aggregates",
    "NoisyHorvitzThompson": "shoal.trials.mechanisms.aggregates",
    "PrivateAnswers": "shoal.trials.questions.result",
    "PrivateTrial": "shoal.trials.result",
    "Questions": "shoal.trials.questions.questions",
    "QuestionsPlan": "shoal.trials.questions.plan",
    "Space": "shoal.data.outcome_space",
    "TrialPlan": "shoal.trials.forecast",
    "UniformPrior": "shoal.trials.mechanisms.outcomes",
    "detectable": "shoal.trials.student",
    "plan": "shoal.trials.forecast",
    "power": "shoal.trials.student",
}

__all__ = [
    "BestTable",
    "ClusterDP",
    "ClusterFree",
    "Effect",
    "Expected",
    "Inference",
    "NoisyHistogram",
    "NoisyHorvitzThompson",
    "PrivateAnswers",
    "PrivateTrial",
    "Questions",
    "QuestionsPlan",
    "Space",
    "TrialPlan",
    "UniformPrior",
    "detectable",
    "plan",
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
