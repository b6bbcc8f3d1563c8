"""Offers all kinds of releases of an experiment, from its public columns."""

from typing import Any

from shoal import checks
from shoal.errors import InputError
from shoal.privacy.budget import Amount
from shoal.trials.cluster_prior import ClusterPrior, choice_of
from shoal.trials.domain import FEWEST_LEVELS, MOST_LEVELS, Domain, domain_of
from shoal.trials.expected import Expected
from shoal.trials.forecasting import Forecast, forecast
from shoal.trials.histogram import HistogramPlan, fitted
from shoal.trials.plan import Plan, Request
from shoal.trials.questions.ask import Questions
from shoal.trials.unit_table import (
    PriorPlan,
    PriorRequest,
    TablePlan,
    TableRequest,
    least_table,
    uniform_table,
)
from shoal.trials.units import FEWEST, Units


class Experiment(Units):
    """A randomised experiment: the public columns of its units. No outcome is here.

    Source: docs/experiments.md.

    Args:
        arm: The arm of each unit, shape (rows,): whole numbers, booleans or texts.
        cluster: The cluster of each unit, within which arms were assigned; None for one cluster.
        covariates: Public columns by name, each of shape (rows,): numbers, booleans or texts.
        unit: A public name of each unit, different from all others. Without names, units have no
            order, because that of the rows could follow the outcomes.
        control: The arm that others are compared with; if there are two arms, the first one when
            sorted unless given.
        assigned: The group (class, village) of each unit, if groups were assigned to arms whole.
            "units" says that units were assigned one by one, as None assumes.
        single_arm: `refuse` clusters where an arm has nobody, or `drop` them; then the effect in
            the clusters that are left is estimated.
        keep: Which rows count, booleans of shape (rows,), if that is public: for example those
            whose outcome is known, if it is public which outcomes are missing.
        clustering_epsilon: The loss by which private clusters were made; it is charged, too.
        exact: Keep covariates of more than 1,000 different numbers as they are, which is slow; else
            they are rounded to 1,000 steps of their range, and effects are those given the rounded
            column.

    Raises:
        InputError: Unusable names or rules, an unknown control, none of three arms or more, or an
            arm of one group.
        DataError: Columns that are not usable, fewer than two arms, clusters in which an arm has
            nobody, or groups with units of several arms or clusters.

    Guarantees: G-ROWS.

    Example:
        >>> from shoal import trials
        >>> study = trials.Experiment([0, 1, 1, 0, 1], ["a", "a", "b", "b", "b"])
        >>> study.design.n, study.design.sizes.tolist()
        (5, [[1, 1], [1, 2]])
    """

    def __repr__(self) -> str:
        return f"<experiment of {self.design}>"

    def forecast(
        self,
        domain: Domain | str,
        epsilon: Amount,
        *,
        expected: Expected | None = None,
        effect: float | None = None,
        confidence: float = 0.95,
        power: float = 0.8,
    ) -> Forecast:
        """Expected errors of each kind of release, before any outcome is read: `trials.forecast`.

        Args:
            domain: Levels of the outcome: a `trials.Domain`, or a text such as `binary`.
            epsilon: The privacy loss of one outcome.
            expected: What is publicly expected of outcomes.
            effect: Effect whose power is computed, in the outcome's unit.
            confidence: Confidence of the intervals.
            power: Probability with which the detectable effect is told from 0.

        Returns:
            A forecast; nothing is spent.

        Raises:
            InputError: Numbers that make no forecast, or groups that were assigned whole.
        """
        if self.design.group is not None:
            raise InputError(
                "the experiment has assigned groups, which a forecast does not support",
                "use ask(): its plan predicts errors of assigned groups, and costs nothing",
            )
        return forecast(
            self.design.sizes,
            domain,
            epsilon,
            expected=expected,
            effect=effect,
            confidence=confidence,
            power=power,
        )

    def table(
        self,
        domain: Domain | str,
        epsilon: Amount,
        *,
        delta: Amount = 0,
        mechanism: str | ClusterPrior = "best_table",
        levels: int | str = "auto",
        expected: Expected | None = None,
    ) -> Plan:
        """Plans a table of units: a private response for each, from which anything can be computed.

        `best_table` has the least variance of all unbiased tables of this loss. `uniform_prior`
        keeps an outcome or draws one of the levels. `trials.ClusterPrior` keeps it or draws from a
        noisy histogram of cluster and arm (paper 003, Algorithm 2).

        Source: docs/theory/experiments.md#private-responses and #the-best-table.

        Args:
            domain: Levels of the outcome: a `trials.Domain`, or a text such as `binary`.
            epsilon: The privacy loss of one outcome; `best_table` takes 0.01 to 8.
            delta: The delta of (epsilon, delta)-DP; `best_table` takes 0.
            mechanism: `best_table`, `uniform_prior` or a `trials.ClusterPrior`.
            levels: Levels in use: `auto`, `all` or a number.
            expected: What is publicly expected of outcomes: its mean variance is made least.

        Returns:
            The plan; nothing is spent.

        Raises:
            InputError: Numbers outside their ranges.

        Guarantees: G-LOSS, G-UNBIASED, G-BOUND.

        Example:
            >>> from shoal import trials
            >>> study = trials.Experiment([0, 1] * 500)
            >>> plan = study.table(trials.Domain.binary(), epsilon=1)
            >>> plan.epsilon <= 1, plan.mechanism
            (True, 'best_table')
        """
        if isinstance(levels, str):
            checks.choice(levels, ("auto", "all"), "levels")
        else:
            levels = checks.whole(levels, "levels", least=FEWEST_LEVELS, most=MOST_LEVELS)
        domain = domain_of(domain)
        asked: dict[str, Any] = {"domain": domain, "epsilon": epsilon, "delta": delta}
        asked |= {"levels": levels, "expected": expected}
        if isinstance(mechanism, ClusterPrior):
            of_prior = PriorRequest.of(**asked, prior=mechanism)
            kept = domain.coarse(domain.size if isinstance(levels, str) else levels)
            prior = choice_of(mechanism, kept, of_prior.epsilon, of_prior.delta)
            return PriorPlan(of_prior, self.design, prior)
        checks.choice(mechanism, ("best_table", "uniform_prior"), "mechanism")
        request = TableRequest.of(**asked, mechanism=mechanism)
        if mechanism == "uniform_prior":
            chosen = uniform_table(domain, request.epsilon, request.delta, levels, expected)
        elif request.delta:
            raise InputError(
                "the best table takes no delta", 'leave it out, or give "uniform_prior"'
            )
        else:
            chosen = least_table(domain, request.epsilon, levels, expected)
        return TablePlan(request, self.design, chosen)

    def histogram(self, domain: Domain | str, epsilon: Amount) -> Plan:
        """Plans noisy counts of every level in every cluster and arm.

        A changed outcome moves two counts by one each, so that noise on shares has the scale
        2/(n epsilon), twice the printed one (paper 003, Proposition A.3; erratum 15).

        Source: docs/theory/experiments.md#choice-of-parameters.

        Args:
            domain: Levels of the outcome: a `trials.Domain`, or a text such as `binary`.
            epsilon: The privacy loss of one outcome.

        Returns:
            The plan; nothing is spent.

        Raises:
            InputError: Numbers outside their ranges.

        Guarantees: G-LOSS.

        Example:
            >>> from shoal import trials
            >>> trials.Experiment([0, 1] * 500).histogram(trials.Domain.binary(), epsilon=1).epsilon
            1.0
        """
        request = Request.of(domain=domain_of(domain), epsilon=epsilon)
        return HistogramPlan(request, self.design, fitted(self.design.n, request.epsilon))

    def ask(self) -> Questions:
        """Begins a list of questions: effects, means of arms, regressions.

        Source: docs/theory/experiments.md#questions.

        Returns:
            An empty list; its methods return longer ones.

        Raises:
            InputError: An arm of one unit, which tells nothing of how outcomes differ.

        Example:
            >>> from shoal import trials
            >>> asked = trials.Experiment([0, 1] * 500).ask().effect()
            >>> asked.plan(trials.Domain.binary(), epsilon=1).names
            ('effect',)
        """
        sizes = self.design.sizes.sum(axis=0)
        if int(sizes.min()) < FEWEST:
            lone = checks.shown(self.design.arm_names[int(sizes.argmin())])
            raise InputError(
                f"the arm {lone} has only one unit, which does not show how outcomes differ",
                "leave this arm out",
            )
        return Questions(self.design, one_by_one=self.one_by_one)
