"""Plans of questions in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.errors import printable
from shoal.privacy.displayed_loss import show
from shoal.trials.questions.answers import aligned

if TYPE_CHECKING:
    from shoal.trials.questions.plan_facts import QuestionsFacts

_HEAD = (
    "question",
    "noise",
    "standard error",
    "without noise",
    "95% interval",
    "times",
    "spikiness",
)


def plan_text(plan: QuestionsFacts) -> str:
    """Head, one row a question, and what the columns mean."""
    rows = [_HEAD]
    for each in plan.predicted:
        errors = f"{each.standard_error:.3g}", f"{each.plain_error:.3g}"
        widths = f"+-{each.half_width:.3g}", f"{each.widening:.3g}", f"{each.spikiness:.3g}"
        rows.append((printable(each.question), f"{each.noise:.3g}", *errors, *widths))
    return "\n".join([_first(plan), aligned(rows), *_meanings(plan)])


def _first(plan: QuestionsFacts) -> str:
    clusters, many = len(plan.columns.assignment.clusters), len(plan.names)
    return (
        f"{many} question{'' if many == 1 else 's'} of {plan.columns.n} units in {clusters} "
        f"cluster{'' if clusters == 1 else 's'}, {len(plan.columns.arms)} arms, "
        f"epsilon {show(plan.numbers.loss)} for one outcome"
    )


def _meanings(plan: QuestionsFacts) -> list[str]:
    groups = printable(" x ".join(["arm", *plan.numbers.by]))
    return [
        (
            "noise: standard deviation of the Laplace noise; no Laplace noise of these questions "
            f"has a total variance below 1/{plan.lower_bound_ratio:.3g} of this one"
        ),
        (
            "standard error: of sampling and noise, for outcomes of standard deviation "
            f"{plan.spread:.4g} (spread); only predictions rest on it"
        ),
        (
            "95% interval: half its width, and how many times as wide as without noise; outcomes "
            f"differ alike within {groups}, and units were assigned one by one"
        ),
        "spikiness: 1 if all units weigh alike; the noise is that of units/spikiness^2 that do",
        "arms, clusters and covariates are public and are published with the release",
    ]
