"""Carrying out a plan of questions: outcomes once, one draw, one charge, then delivery."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.checks import different
from shoal.errors import DataError
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import printed_text, unit_of_values
from shoal.release.draw import release
from shoal.release.question import Question
from shoal.trials.questions.columns import Columns, columns_of, given_covariates, groups_said
from shoal.trials.questions.numbers import Released
from shoal.trials.questions.plan_facts import KIND, QuestionsFacts
from shoal.trials.questions.result import PrivateAnswers, to_results

PRIVACY = "pure label differential privacy"
NEIGHBOURS = "one unit's outcome changes; its cluster, treatment and covariates are public"
# What follows from the rest of a plan.
_FOLLOWS = ("numbers", "claims")


@np.errstate(all="ignore")
def release_questions(
    plan: QuestionsFacts,
    outcomes: Any,
    arm: Any,
    cluster: Any,
    covariates: Mapping[str, Any] | None,
    *,
    assigned: Any,
    ledger: str | os.PathLike[str] | Ledger | None,
    name: str,
    noise: Simulated | None,
    outcome_name: str,
    privacy_unit: str,
) -> PrivateAnswers:
    """See `QuestionsPlan.release`."""
    printed_text(outcome_name)
    unit = unit_of_values(
        privacy_unit,
        several=False,
        recorded=ledger is not None,
        unnamed="" if outcome_name else "outcome_name",
    )
    given = given_covariates(covariates)
    public = {"arm": arm, "cluster": cluster, "assigned": groups_said(assigned)} | {
        f"covariate {key}": each for key, each in given
    }
    different({"outcome": outcomes}, public)
    control = plan.columns.assignment.arms[0].as_py()
    columns, rows = columns_of(arm, cluster, covariates, control, public["assigned"])
    _check_columns(columns, plan.columns)
    numbers = plan.space.numbers(outcomes)
    if len(numbers) != plan.columns.n:
        raise DataError(
            "outcomes and arms of different length",
            "one outcome and one arm for each unit",
            "give columns of the same length",
        )
    if not np.isfinite(numbers).all():
        raise DataError(
            "missing or infinite outcomes",
            "a finite outcome in every row",
            "clean the data; if it is public which outcomes are missing, leave these units out of "
            "all columns and plan anew",
        )
    question = question_of(plan, outcome_name, unit, name)
    way = QuestionsDraw(plan, numbers[rows])
    done = release(question, way, ledger=ledger, noise=noise)
    return PrivateAnswers.delivered(done, plan)


def _check_columns(columns: Columns, planned: Columns) -> None:
    """Refuse public columns that are not those of the plan."""
    if (columns.assigned is None) != (planned.assigned is None):
        missing = columns.assigned is None
        raise DataError(
            f"{'no assigned groups' if missing else 'assigned groups'} for a plan that has "
            f"{'some' if missing else 'none'}",
            "units that were assigned as the plan says",
            "give assigned= (--assigned) as in the plan, or plan anew",
        )
    if columns.to_document() != planned.to_document():
        raise DataError(
            "arms, clusters, covariates or assigned groups other than the plan's",
            f"the public columns of the plan's {planned.n} units, in the rows of the outcomes",
            "give the columns that the questions were made of, or plan with these",
        )


def question_of(plan: QuestionsFacts, outcome_name: str, unit: str, name: str = "") -> Question:
    """What a release is asked for; numbers and their loss follow from what was asked.

    Args:
        plan: What is carried out.
        outcome_name: What the outcome is called.
        unit: Whose loss it is.
        name: What the release is of.

    Returns:
        The question; its key is the ledger's.
    """
    document = plan.to_document()
    return Question(
        kind=KIND,
        plan=document,
        asked={part: each for part, each in document.items() if part not in _FOLLOWS},
        records={"outcome": outcome_name},
        unit=unit,
        loss=plan.loss,
        privacy=PRIVACY,
        neighbours=NEIGHBOURS,
        name=name,
    )


@dataclass(frozen=True, eq=False)
class QuestionsDraw:
    """The draw of a plan of questions.

    Attributes:
        plan: What is carried out.
        outcomes: The private data, in the order of the plan's units.
    """

    plan: QuestionsFacts
    outcomes: NDArray[np.float64]

    def __repr__(self) -> str:
        """Nothing private."""
        return f"<draw of answers of {self.plan.columns.n} units>"

    def draw(self, noise: Noise) -> Released:
        """Read the outcomes and draw."""
        plan = self.plan
        return plan.numbers.draw(self.outcomes, plan.reading.groups, plan.space, noise)

    def results(self, drawn: Released) -> documents.Document:
        """What was drawn, and the answers that follow from it."""
        return to_results(self.plan, drawn)

    def publishes_values(self, drawn: Released) -> bool:
        """Never: only sums with noise."""
        return False

    def check(self) -> None:
        """The question holds all public columns, which were compared."""
