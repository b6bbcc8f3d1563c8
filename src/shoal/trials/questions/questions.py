"""The list of questions, as a custodian writes it, from public columns alone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal import checks
from shoal.data.outcome_space import Space, check_space
from shoal.errors import InputError, ShoalWarning
from shoal.privacy.budget import Amount
from shoal.trials.charge import charge_of
from shoal.trials.questions.asked import (
    EFFECT,
    MEANS,
    PRECISION,
    REGRESSION,
    UNITS,
    Asked,
    Stated,
    blocks_of,
    check_regressors,
    stacked,
)
from shoal.trials.questions.assigned_strategy import numbers_by_group
from shoal.trials.questions.columns import Columns, columns_of, groups_said
from shoal.trials.questions.plan import QuestionsPlan
from shoal.trials.questions.plan_facts import LEAST_SPREAD
from shoal.trials.questions.strategy import Expectations, numbers_of
from shoal.trials.questions.warned import warnings_of

# Outcomes of a stated standard deviation: a part of the range unless said.
_USUAL = 0.25


class Questions:
    """Linear questions of an experiment whose arms, clusters and covariates are public.

    Each method returns a new list with one entry more; nothing private is read. Every question is a
    sum of w_i y_i with public w, and noise is shared among them so that all intervals widen alike.

    Source: docs/theory/questions.md.

    Args:
        arm: The arm of each unit, shape (units,).
        cluster: Within which units, or groups, were assigned, shape (units,); None for one cluster.
        covariates: Public columns by name, each of shape (units,): numbers, booleans or texts.
        control: The arm that others are compared with; the first when sorted unless given.
        assigned: The group (class, village) of each unit, shape (units,), where groups were
            assigned to arms whole: variances of answers are then those of groups, and have a part
            of the loss. `units` says that units were assigned one by one, as None supposes.

    Raises:
        InputError: Unusable names, an arm of one unit or group, or too many covariates.
        DataError: Columns that are not usable, clusters in which an arm has nobody, or groups with
            units of several arms or clusters.

    Guarantees: G-LOSS, G-UNBIASED.

    Example:
        >>> import numpy as np
        >>> from shoal.trials import Questions, Space
        >>> arm, age = np.arange(400) % 2, np.arange(400) // 2 % 40
        >>> asked = Questions(arm, covariates={"age": age}).effect().regression(["arm", "age"])
        >>> found = asked.plan(Space.binary(), epsilon=1)
        >>> found.names
        ('effect', 'constant in arm + age', 'arm in arm + age', 'age in arm + age')
    """

    __slots__ = ("asked", "columns", "one_by_one")
    asked: tuple[Asked, ...]
    columns: Columns
    one_by_one: bool

    @np.errstate(all="ignore")
    def __init__(
        self,
        arm: Any,
        cluster: Any = None,
        covariates: Mapping[str, Any] | None = None,
        *,
        control: Any = None,
        assigned: Any = None,
    ) -> None:
        groups = groups_said(assigned)
        columns = columns_of(arm, cluster, covariates, control, groups)[0]
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "one_by_one", assigned is not None and groups is None)
        object.__setattr__(self, "asked", ())

    def __setattr__(self, name: str, value: object) -> None:
        """Never: lists of questions do not change."""
        raise AttributeError("questions do not change: its methods return new ones")

    def __repr__(self) -> str:
        """One line."""
        return f"<{len(self.asked)} entries of questions, {self.columns.n} units>"

    def effect(self, by: str | None = None, weights: str = UNITS) -> Questions:
        """Ask for the effect of each arm against the control, stratified by cluster.

        The mean over clusters of differences of means, weighted by their units; with
        `weights="precision"` by what makes noise and sampling together least, for the stated
        spread: then it is the effect of these weights, not the average over the units.

        Source: docs/theory/questions.md#rows-of-weights;
        docs/theory/questions.md#precision-weights.

        Args:
            by: A covariate, or `cluster`, whose values make subgroups: an effect in each.
            weights: `units` or `precision`.

        Returns:
            The list with these questions.

        Raises:
            InputError: No such column, a subgroup without an arm, or precision weights of
                subgroups.
        """
        checks.choice(weights, (UNITS, PRECISION), "weights")
        if by is not None:
            self.columns.covariate(checks.text(by, "by"))
            if weights == PRECISION:
                raise InputError(
                    "precision weights of subgroups", "one of them", "leave by= or weights= out"
                )
        return self._with(Asked(EFFECT, by or "", weights))

    def means(self) -> Questions:
        """Ask for the plain mean of each arm.

        Source: docs/theory/questions.md#rows-of-weights.

        Returns:
            The list with these questions.
        """
        return self._with(Asked(MEANS))

    def regression(self, columns: Sequence[str]) -> Questions:
        """Ask for all coefficients of a least squares regression with a constant.

        Every regression on some of these columns is free afterwards (`PrivateAnswers.regression`),
        where units were assigned one by one; with groups each has a variance of its own.

        Source: docs/theory/questions.md#rows-of-weights.

        Args:
            columns: Names of covariates, `arm` or `cluster`; texts, arms and clusters stand for a
                column a value but the first.

        Returns:
            The list with these questions.

        Raises:
            InputError: No such column, one twice, columns that depend on others, or more of them
                than units.
        """
        return self._with(Asked(REGRESSION, columns=check_regressors(self.columns, columns)))

    @np.errstate(all="ignore")
    def plan(
        self, space: Space, epsilon: Amount, *, spread: float | None = None, clip: bool = False
    ) -> QuestionsPlan:
        """Share the noise among the questions, before any outcome is read.

        Warns of questions that rest on few units, whose intervals noise widens much, and where a
        covariate shows that units may not have been assigned one by one.

        Source: docs/theory/questions.md#noise-for-many-questions.

        Args:
            space: Its lowest and highest levels are the ends of the outcome's range: outcomes
                beyond are moved to them, others stay where they are.
            epsilon: The privacy loss of one outcome.
            spread: Expected standard deviation of outcomes within arms, in their unit: public, and
                only predictions and precision weights follow it. A quarter of the range unless
                given.
            clip: Whether sums of assigned groups are clipped to three deviations that follow from
                the spread, where that makes intervals shorter: far shorter if the range is wide,
                and too short if whole groups share outcomes that few groups have.

        Returns:
            The plan; nothing is spent.

        Raises:
            InputError: Nothing was asked, questions nearly depend on others, or numbers outside
                their ranges.

        Guarantees: G-LOSS.
        """
        width = check_space(space).width
        if not self.asked:
            raise InputError("no questions", "at least one", "ask with effect, means or regression")
        loss = charge_of(epsilon).epsilon
        if clip and (spread is None or self.columns.assigned is None):
            raise InputError(
                "clip=True without assigned groups and a spread",
                "both: what is clipped are sums of groups, to three deviations",
                "leave it out, or give spread= and assigned=",
            )
        given = _USUAL * width if spread is None else spread
        spread = checks.number(
            given, "spread", above=0, least=LEAST_SPREAD * width, most=width, example=width / 4
        )
        blocks = blocks_of(self.columns, self.asked, Stated(width / spread, float(loss)))
        expected = Expectations(width, spread, loss)
        if self.columns.assigned is None:
            numbers = numbers_of(self.columns, blocks, expected)
        else:
            numbers = numbers_by_group(self.columns, blocks, expected, clip=clip)
        found = QuestionsPlan(space, self.columns, self.asked, spread, loss, numbers)
        _check_plan(found)
        for told in warnings_of(found, one_by_one=self.one_by_one):
            warnings.warn(told, ShoalWarning, stacklevel=3)
        return found

    def _with(self, asked: Asked) -> Questions:
        every = (*self.asked, asked)
        # Questions without an answer are found as they are asked.
        stacked(blocks_of(self.columns, every, Stated(1 / _USUAL, 1.0)))
        found = object.__new__(Questions)
        object.__setattr__(found, "columns", self.columns)
        object.__setattr__(found, "one_by_one", self.one_by_one)
        object.__setattr__(found, "asked", every)
        return found


def _check_plan(found: QuestionsPlan) -> None:
    """Refuse what nobody could read or verify, before anything is spent.

    Raises:
        InputError: A loss that leaves much of epsilon, or numbers that rounding kept from being
            those of the questions.
    """
    if not found.spends:
        raise InputError(
            f"epsilon {float(found.asked_epsilon):.3g} for {found.columns.n} units",
            "a loss that whole numbers can come near to",
            "ask for a more moderate epsilon",
        )
    if not found.follows:
        raise InputError(
            "a regression on columns that are far from 0 beside how they differ, or nearly depend "
            "on others",
            "columns whose coefficients floating-point numbers tell",
            "subtract a public number, such as a round mean, or leave a column out",
        )
