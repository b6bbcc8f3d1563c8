"""Randomised experiments with private outcomes and valid effects.

`Experiment` holds the public columns. `Experiment.forecast` says before the experiment what each
kind of release would tell; `table` plans a private response for every unit, `histogram` noisy
counts, and `ask` answers to questions that are known beforehand, whose noise is the least. A plan's
`release` reads the outcomes once. See `docs/explanation/trials.md`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.intervals import detectable as detectable
    from shoal.intervals import power as power
    from shoal.trials.cluster_prior import ClusterPrior as ClusterPrior
    from shoal.trials.effects import Effect as Effect
    from shoal.trials.effects import Effects as Effects
    from shoal.trials.effects import Inference as Inference
    from shoal.trials.expected import Expected as Expected
    from shoal.trials.experiment import Experiment as Experiment
    from shoal.trials.forecasting import Forecast as Forecast
    from shoal.trials.forecasting import forecast as forecast
    from shoal.trials.plan import Plan as Plan
    from shoal.trials.questions.answers import Answer as Answer
    from shoal.trials.questions.answers import Answers as Answers
    from shoal.trials.questions.ask import Questions as Questions
    from shoal.trials.release import Release as Release
    from shoal.trials.space import Space as Space

# Names are loaded when first used, so that the command line starts at once.
_HOME = {
    name: f"shoal.{module}"
    for module, names in {
        "intervals": "detectable power",
        "trials.cluster_prior": "ClusterPrior",
        "trials.effects": "Effect Effects Inference",
        "trials.expected": "Expected",
        "trials.experiment": "Experiment",
        "trials.forecasting": "Forecast forecast",
        "trials.plan": "Plan",
        "trials.questions.answers": "Answer Answers",
        "trials.questions.ask": "Questions",
        "trials.release": "Release",
        "trials.space": "Space",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    if name not in _HOME:
        raise AttributeError(f"module 'shoal.trials' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return [*_HOME]
