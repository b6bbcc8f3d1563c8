"""Lists the questions that a custodian asks, from public columns alone."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from shoal import checks
from shoal.errors import InputError, ShoalWarning
from shoal.privacy.budget import Amount
from shoal.threads import one_thread
from shoal.trials.design import ARM, Design
from shoal.trials.domain import Domain, domain_of
from shoal.trials.questions.bounds import BoundsPlan, bounds_of
from shoal.trials.questions.noise import choices
from shoal.trials.questions.plan import QuestionsPlan, QuestionsRequest
from shoal.trials.questions.ratios import RatiosPlan, ratios_of
from shoal.trials.questions.weights import (
    EFFECT,
    MEANS,
    PRECISION,
    REGRESSION,
    UNITS,
    QuestionEntry,
    blocks_of,
    regressor_names,
)

# The usual standard deviation of outcomes, as a part of the range.
USUAL = 0.25
# The largest one, which is usual for two levels.
_LARGEST = 0.5
# The smallest one.
_LEAST_SD = 1e-6
# Whole numbers spend at least this part of epsilon.
_SPENT = Fraction(999, 1000)


@dataclass(frozen=True, eq=False)
class Questions:
    """Linear questions of an experiment whose arms, clusters and covariates are public.

    Make one with `trials.Experiment.ask`. Each method returns a new list with one entry more;
    nothing private is read. Every question is a sum of w_i y_i with public w, and noise is shared
    among them so that all intervals widen alike.

    Source: docs/theory/experiments.md#questions.

    Attributes:
        design: The public columns.
        entries: What was asked, call by call.
        names: Names of the questions.
        one_by_one: Whether the custodian said that units were assigned one by one.

    Guarantees: G-LOSS, G-UNBIASED.

    Example:
        >>> import numpy as np
        >>> from shoal import trials
        >>> study = trials.Experiment(np.arange(400) % 2, covariates={"age": np.arange(400) // 10})
        >>> asked = study.ask().effect().regression(["arm", "age"])
        >>> asked.plan(trials.Domain.binary(), epsilon=1).names
        ('effect', 'constant in arm + age', 'arm in arm + age', 'age in arm + age')
    """

    design: Design
    entries: tuple[QuestionEntry, ...] = ()
    names: tuple[str, ...] = ()
    one_by_one: bool = False

    def __repr__(self) -> str:
        return f"<{len(self.entries)} entries of questions, {self.design.n} units>"

    def effect(self, by: str | None = None, weights: str = UNITS) -> "Questions":
        """Asks for the effect of each arm against the control, stratified by cluster.

        The effect is the mean over clusters of differences of means, weighted by their units. With
        `weights="precision"`, it has the weights that make the sum of noise and sampling variance
        smallest for the stated `sd`: then it is not the average over the units.

        Source: docs/theory/experiments.md#questions;
        docs/theory/experiments.md#precision-weights.

        Args:
            by: A covariate, or `cluster`, whose values make subgroups: an effect in each.
            weights: `units` or `precision`.

        Returns:
            The list with these questions.

        Raises:
            InputError: No such column, a subgroup without an arm, or precision weights of
                subgroups.
        """
        if by is not None:
            if checks.text(by, "by") == ARM:
                raise InputError("the treatment makes no subgroups", "give a covariate or cluster")
            self.design.covariate(by)
            if weights == PRECISION:
                raise InputError("subgroups take no precision weights", "leave by= or weights= out")
        return self._with(QuestionEntry.of(kind=EFFECT, by=by or "", weights=weights))

    def means(self) -> "Questions":
        """Asks for the plain mean of each arm.

        Source: docs/theory/experiments.md#questions.

        Returns:
            The list with these questions.
        """
        return self._with(QuestionEntry.of(kind=MEANS))

    def regression(self, columns: str | Sequence[str]) -> "Questions":
        """Asks for all coefficients of a least squares regression with a constant.

        Every regression on some of these columns is free afterwards (`Release.regression`).

        Source: docs/theory/experiments.md#questions.

        Args:
            columns: Names of covariates, `arm` or `cluster`, or a text such as "arm + age". Texts,
                arms, clusters and numbers in `C(age)` make a column for each value but the first;
                `arm:age` makes products.

        Returns:
            The list with these questions.

        Raises:
            InputError: No such column, one twice, columns that depend on others, or more of them
                than units.
        """
        return self._with(
            QuestionEntry.of(kind=REGRESSION, columns=regressor_names(self.design, columns))
        )

    @one_thread
    @np.errstate(all="ignore")
    def plan(
        self,
        domain: Domain | str | Sequence[Domain | str],
        epsilon: Amount,
        *,
        sd: float | None = None,
        expected: tuple[float, float] | None = None,
        lift: bool = False,
        missing: str = "refuse",
    ) -> QuestionsPlan | RatiosPlan | BoundsPlan:
        """Shares the noise among the questions, before any outcome is read.

        Warns of questions that rest on few units, and where a covariate shows that units may not
        have been assigned one by one.

        Source: docs/theory/experiments.md#noise-for-many-questions.

        Args:
            domain: A `trials.Domain`, or a text such as `binary`. Its lowest and highest levels are
                the ends of the outcome's range: outcomes beyond are moved to them, and all others
                stay as they are. A pair is that of a ratio: of its numerator and denominator.
            epsilon: The privacy loss of one outcome.
            sd: Expected standard deviation of outcomes within arms, in their unit. It is public,
                and only predictions and precision weights depend on it. Unless given, it is a
                quarter of the range, or half of it if there are two levels. Of a ratio r it is that
                of numerator - r x denominator: the root of the expected numerator.
            expected: Of a ratio the expected means of numerator and denominator, such as (0.3, 3).
                They decide how noise is shared, and what is predicted.
            lift: Of a ratio show also ratio/ratio of the control - 1: nothing more is released.
            missing: With `worst`, intervals hold whatever missing outcomes are, and who lacks one
                is private; else none may be missing, as with `public` nobody is left who lacks one.

        Returns:
            The plan; nothing is spent.

        Raises:
            InputError: Nothing was asked, questions nearly depend on others, or numbers outside
                their ranges.

        Guarantees: G-LOSS.
        """
        design = self.design
        if not self.entries:
            raise InputError("there are no questions", "ask with effect, means or regression")
        worst = checks.choice(missing, ("refuse", "public", "worst"), "missing") == "worst"
        if isinstance(domain, tuple | list) and len(domain) == 1:
            (domain,) = domain
        if isinstance(domain, tuple | list):
            if worst:
                raise InputError(
                    "a ratio has no missing outcomes: a user without a row has 0",
                    'leave missing="worst" out',
                )
            return self._ratios(domain, epsilon, sd=sd, expected=expected, with_lift=lift)
        if expected is not None or lift:
            raise InputError(
                "expected and lift are about ratios, and there is one domain",
                "give the domains of a numerator and a denominator, or leave both out",
            )
        domain = domain_of(domain)
        width = domain.width
        usual = (_LARGEST if len(domain.levels) == 2 else USUAL) * width
        given = usual if sd is None else sd
        sd = checks.number(given, "sd", least=_LEAST_SD * width, most=width, example=width / 4)
        if worst:
            return bounds_of(design, self.entries, domain, epsilon, sd)
        asked = {"domain": domain, "epsilon": epsilon, "entries": self.entries, "sd": sd}
        request = QuestionsRequest.of(**asked)
        loss = request.epsilon
        blocks = blocks_of(design, self.entries, width / sd / float(loss))
        chosen = choices(design, blocks, width, loss)
        tried = (QuestionsPlan(request, design, each) for each in chosen)
        # Of equal plans, the first one is taken.
        found = min(tried, key=_total_width)
        try:
            # There is no loss if questions do not follow from the rounded numbers.
            spent = found.exact_epsilon
        except LookupError:
            raise InputError(
                "some columns of the regression nearly depend on others, or are far from 0 "
                "compared with their spread",
                "subtract a public number, such as a round mean, or leave a column out",
            ) from None
        if spent < _SPENT * loss:
            raise InputError(
                f"whole numbers cannot use all of epsilon {float(loss):.3g} for {design.n} units",
                "ask for an epsilon nearer to 1",
            )
        # Questions that rest on one assigned group are refused here, before anything is spent.
        for sentence in found.warnings(one_by_one=self.one_by_one):
            warnings.warn(sentence, ShoalWarning, stacklevel=4)
        return found

    def _ratios(self, domains: Sequence[Domain | str], epsilon: Amount, **more: Any) -> RatiosPlan:
        """Returns the plan of ratios of two outcomes."""
        if len(domains) != 2:
            raise InputError(
                f"there are {len(domains)} domains",
                "give two: of the numerator, and of the denominator from 0 or, better, 1 on",
            )
        first, second = map(domain_of, domains)
        found = ratios_of(self.design, self.entries, (first, second), epsilon, **more)
        for sentence in found.warnings():
            warnings.warn(sentence, ShoalWarning, stacklevel=5)
        return found

    def _with(self, entry: QuestionEntry) -> "Questions":
        # Questions that have no answer are refused when they are asked.
        (block,) = blocks_of(self.design, [entry], 1 / USUAL, self.names)
        return replace(self, entries=(*self.entries, entry), names=(*self.names, *block.names))


def _total_width(plan: QuestionsPlan) -> float:
    """The sum of half widths, each divided by that without noise; infinite if one is unknown."""
    try:
        return math.fsum(each.widening for each in plan.predicted)
    except LookupError:
        return math.inf
