"""Public columns of an experiment, checked and put in an order that outcomes cannot set."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import checks
from shoal.checks import private_numbers
from shoal.data import keys
from shoal.errors import DataError, InputError
from shoal.privacy.budget import Amount
from shoal.release.unit_column import ONE_ROW
from shoal.trials.assigned_groups import check_groups, check_one_by_one
from shoal.trials.cluster_prior import ClusterPrior, choice_of
from shoal.trials.design import RESERVED, Covariate, Design, Ints, column_of
from shoal.trials.expected import Expected
from shoal.trials.forecasting import Forecast, forecast
from shoal.trials.histogram import HistogramPlan, fitted
from shoal.trials.plan import Plan, Request
from shoal.trials.questions.ask import Questions
from shoal.trials.space import FEWEST_LEVELS, MOST_LEVELS, Space, space_of
from shoal.trials.unit_table import (
    PriorPlan,
    TablePlan,
    TableRequest,
    least_table,
    uniform_table,
)

_BETWEEN = (" + ", ":")
_FEWEST, _MOST_ARMS, _MOST_COVARIATES, _LONGEST = 2, 64, 64, 100
# Sums of squares of regressors must be numbers.
_SMALLEST, _LARGEST = 1e-50, 1e50
_WHOLE_CLUSTERS = (
    "if whole clusters were assigned to arms, give them as assigned= (--assigned) and leave them "
    "out as clusters; for a table of units with names give them also when estimating: "
    "release.estimate(assigned=, unit=)"
)


class Experiment:
    """A randomised experiment: the public columns of its units. No outcome is here.

    Source: docs/experiments.md.

    Args:
        arm: The arm of each unit, shape (rows,): whole numbers, booleans or texts.
        cluster: The cluster of each unit, within which arms were assigned; None for one cluster.
        covariates: Public columns by name, each of shape (rows,): numbers, booleans or texts.
        unit: A public name of each unit, different from all others. Without names units are in no
            order: that of the rows could follow the outcomes.
        control: The arm that others are compared with; of two arms the first when sorted unless
            given.
        assigned: The group (class, village) of each unit where groups were assigned to arms whole.
            `units` says that units were assigned one by one, as None supposes.
        single_arm: What happens to clusters where an arm has nobody: `refuse`, or `drop`, which
            changes what is estimated to the effect in the clusters that are left.
        keep: Which rows count, booleans of shape (rows,), if that is public: for example those
            whose outcome is known, if it is public which outcomes are missing.
        clustering_epsilon: What private clusters cost when they were made; it is charged, too.

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

    design: Design
    rows: Ints
    left_out: int
    one_by_one: bool

    @np.errstate(all="ignore")
    def __init__(
        self,
        arm: Any,
        cluster: Any = None,
        covariates: Mapping[str, Any] | None = None,
        *,
        unit: Any = None,
        control: Any = None,
        assigned: Any = None,
        single_arm: str = "refuse",
        keep: Any = None,
        clustering_epsilon: Amount = 0,
    ) -> None:
        checks.choice(single_arm, ("refuse", "drop"), "single_arm")
        given = {} if covariates is None else checks.mapping(covariates, "covariates")
        named = {name: given[name] for name in sorted(map(_name, given))}
        if len(named) > _MOST_COVARIATES:
            raise InputError(
                f"there are {len(named)} covariates", f"give at most {_MOST_COVARIATES}"
            )
        groups = None if isinstance(assigned, str) else assigned
        check_one_by_one(assigned if groups is None else None, None)
        self.one_by_one = assigned is not None and groups is None
        self.given = {
            "arm": arm, "cluster": cluster, "unit": unit, "assigned": groups, "keep": keep
        } | {f"covariate {name}": each for name, each in named.items()}  # fmt: skip
        self.all_rows = _rows(self.given)
        checks.paired({}, self.given)
        rows = np.arange(self.all_rows) if keep is None else _kept(keep, self.all_rows)
        arms, own = _control_first(*_ranked(arm, "arm", rows), control)
        home = np.zeros(len(rows), dtype=np.int64)
        homes: pa.Array[Any] = pa.array(["all"])
        if cluster is not None:
            homes, home = _ranked(cluster, "cluster", rows)
        whole, self.left_out = _whole(home, own, (len(homes), len(arms)), single_arm)
        inside = whole[home]
        rows, own, home = rows[inside], own[inside], (np.cumsum(whole) - 1)[home[inside]]
        cell = home * len(arms) + own
        columns = [_covariate(name, each, rows) for name, each in named.items()]
        names = None if unit is None else _names(unit, rows)
        group = None if groups is None else _ranked(groups, "assigned", rows)[1]
        codes = [each.codes for each in columns]
        levels = [cell, *([] if group is None else [group]), *codes]
        order = np.lexsort([*([] if names is None else [names[1]]), *reversed(levels)])
        table = np.stack(levels)[:, order]
        first = np.flatnonzero(np.r_[True, (np.diff(table, axis=1) != 0).any(axis=0)])
        self.rows = rows[order]
        self.design = Design.of(
            clusters=homes.take(np.flatnonzero(whole)),
            arms=arms,
            cell=cell[order][first],
            many=np.diff(np.r_[first, len(order)]),
            group=None if group is None else group[order][first],
            covariates=tuple(
                each.model_copy(update={"codes": each.codes[order[first]]}) for each in columns
            ),
            units=None if names is None else names[0].take(order),
            clustering_epsilon=clustering_epsilon,
        )
        if group is not None:
            check_groups(
                self.design,
                np.asarray(self.design.group)[self.design.kind_of_unit],
                keys.as_array(groups, "assigned").take(self.rows),
            )

    def __repr__(self) -> str:
        return f"<experiment of {self.design}>"

    def forecast(
        self,
        space: Space | str,
        epsilon: Amount,
        *,
        expected: Expected | None = None,
        effect: float | None = None,
        confidence: float = 0.95,
        power: float = 0.8,
    ) -> Forecast:
        """What each kind of release would tell, before any outcome is read: see `trials.forecast`.

        Args:
            space: Levels of the outcome: a `trials.Space`, or a text such as `binary`.
            epsilon: The privacy loss of one outcome.
            expected: What is publicly expected of outcomes.
            effect: Effect whose power is computed, in the outcome's unit.
            confidence: Of the intervals.
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
            self.design.sizes, space, epsilon, expected=expected, effect=effect,
            confidence=confidence, power=power,
        )  # fmt: skip

    def table(
        self,
        space: Space | str,
        epsilon: Amount,
        *,
        delta: Amount = 0,
        mechanism: str | ClusterPrior = "best",
        levels: int | str = "auto",
        expected: Expected | None = None,
    ) -> Plan:
        """Plans a table of units: a private response for each, from which anything can be computed.

        `best` is the table of least variance among all unbiased ones of this loss; `uniform` keeps
        an outcome or draws one of the levels; `trials.ClusterPrior` draws from a noisy histogram of
        cluster and arm (paper 003, Algorithm 2).

        Source: docs/theory/experiments.md#private-responses and #the-best-table.

        Args:
            space: Levels of the outcome: a `trials.Space`, or a text such as `binary`.
            epsilon: The privacy loss of one outcome; of `best` 0.01 to 8.
            delta: The delta of (epsilon, delta)-DP; of `best` 0.
            mechanism: `best`, `uniform` or a `trials.ClusterPrior`.
            levels: Levels in use: `auto`, `all` or a number.
            expected: What is publicly expected of outcomes, which decides what is least.

        Returns:
            The plan; nothing is spent.

        Raises:
            InputError: Numbers outside their ranges.

        Guarantees: G-LOSS, G-UNBIASED, G-BOUND.

        Example:
            >>> from shoal import trials
            >>> study = trials.Experiment([0, 1] * 500)
            >>> plan = study.table(trials.Space.binary(), epsilon=1)
            >>> plan.epsilon <= 1, plan.mechanism
            (True, 'best_table')
        """
        if isinstance(levels, str):
            checks.choice(levels, ("auto", "all"), "levels")
        else:
            levels = checks.whole(levels, "levels", least=FEWEST_LEVELS, most=MOST_LEVELS)
        space = space_of(space)
        asked: dict[str, Any] = {"space": space, "epsilon": epsilon, "delta": delta}
        asked |= {"levels": levels, "expected": expected}
        if isinstance(mechanism, ClusterPrior):
            name = "cluster_free" if mechanism.pooled else "cluster_dp"
            asked |= {"mechanism": name, "floor": mechanism.floor, "noise": mechanism.noise}
            request = TableRequest.of(**asked)
            kept = space.coarse(space.size if isinstance(levels, str) else levels)
            prior = choice_of(mechanism, kept, request.epsilon, request.delta)
            return PriorPlan(request, self.design, prior)
        if checks.choice(mechanism, ("best", "uniform"), "mechanism") == "best":
            request = TableRequest.of(**asked, mechanism="best_table")
            if request.delta:
                raise InputError("the best table takes no delta", 'leave it out, or give "uniform"')
            chosen = least_table(space, request.epsilon, levels, expected)
        else:
            request = TableRequest.of(**asked, mechanism="uniform_prior")
            chosen = uniform_table(space, request.epsilon, request.delta, levels, expected)
        return TablePlan(request, self.design, chosen)

    def histogram(self, space: Space | str, epsilon: Amount) -> Plan:
        """Plans noisy counts of every level in every cluster and arm.

        A changed outcome moves two counts by one each: noise on shares has the scale 2/(n epsilon),
        twice what is printed (paper 003, Proposition A.3; erratum 15).

        Source: docs/theory/experiments.md#choice-of-parameters.

        Args:
            space: Levels of the outcome: a `trials.Space`, or a text such as `binary`.
            epsilon: The privacy loss of one outcome.

        Returns:
            The plan; nothing is spent.

        Raises:
            InputError: Numbers outside their ranges.

        Guarantees: G-LOSS.

        Example:
            >>> from shoal import trials
            >>> trials.Experiment([0, 1] * 500).histogram(trials.Space.binary(), epsilon=1).epsilon
            1.0
        """
        request = Request.of(space=space_of(space), epsilon=epsilon)
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
            >>> asked.plan(trials.Space.binary(), epsilon=1).names
            ('effect',)
        """
        sizes = self.design.sizes.sum(axis=0)
        if int(sizes.min()) < _FEWEST:
            lone = checks.shown(self.design.arm_names[int(sizes.argmin())])
            raise InputError(
                f"the arm {lone} has only one unit, which does not show how outcomes differ",
                "leave this arm out",
            )
        return Questions(self.design, one_by_one=self.one_by_one)


def _ranked(values: Any, name: str, rows: Ints) -> "tuple[pa.Array[Any], Ints]":
    return keys.ranked(keys.as_array(values, name).take(rows), name)


def _rows(given: Mapping[str, Any]) -> int:
    """How many rows all columns have."""
    lengths = {}
    for name, column in given.items():
        if column is not None:
            try:
                lengths[len(column)] = name
            except TypeError:
                raise DataError(f"{name} is not a column", "give a column of the units") from None
    if len(lengths) != 1 or 0 in lengths:
        raise DataError(
            f"the columns have {' and '.join(map(str, sorted(lengths)))} rows",
            "give columns of the same length, with at least one row",
        )
    return next(iter(lengths))


def _kept(keep: Any, rows: int) -> Ints:
    found = np.asarray(keep)
    if found.dtype != np.bool_ or found.shape != (rows,):
        raise DataError("the rows to keep are not booleans", "give one true or false for each row")
    return np.flatnonzero(found)


def _names(unit: Any, rows: Ints) -> "tuple[pa.Array[Any], Ints]":
    """Names of units, each different, and the place of each when sorted."""
    names = keys.as_array(unit, "unit").take(rows)
    distinct, place = keys.ranked(names, "unit")
    keys.check_spelling(distinct, "unit")
    if len(distinct) != len(names):
        several = int((np.bincount(place) > 1).sum())
        raise DataError(
            f"{several} names of units occur in several rows",
            ONE_ROW,
        )
    return names, place


def _control_first(found: "pa.Array[Any]", arm: Ints, control: Any) -> "tuple[pa.Array[Any], Ints]":
    if not _FEWEST <= len(found) <= _MOST_ARMS:
        raise DataError(
            f"there are {len(found)} arms",
            f"name the column of the treatment, which has {_FEWEST} to {_MOST_ARMS} arms",
        )
    values = found.to_pylist()
    if control is None:
        if len(found) > _FEWEST:
            shown = ", ".join(checks.shown(each) for each in values[:10])
            raise InputError(
                f"it is not clear which of {len(found)} arms is the control: {shown}",
                f"name it, for example control={checks.shown(values[0])} or on the command line "
                f"--control {checks.shown(str(values[0]))}",
            )
        return found, arm
    if isinstance(control, list | dict | set) or control not in values:
        raise InputError(
            f"there is no arm {checks.shown(control)} to be the control",
            f"choose one of {', '.join(str(value) for value in values[:10])}",
        )
    at = values.index(control)
    order = np.r_[at, np.delete(np.arange(len(values)), at)]
    return found.take(order), np.argsort(order)[arm]


def _whole(
    home: Ints, arm: Ints, shape: tuple[int, int], single_arm: str
) -> tuple[NDArray[np.bool_], int]:
    """Which clusters have units of every arm, and how many do not."""
    sizes = np.bincount(home * shape[1] + arm, minlength=shape[0] * shape[1]).reshape(shape)
    whole = np.asarray((sizes > 0).all(axis=1))
    lacking = int((~whole).sum())
    if len(sizes) > 1 and ((sizes > 0).sum(axis=1) == 1).all():
        raise DataError(
            f"each of {len(sizes)} clusters has units of only one arm",
            "give clusters within which units or groups were assigned, with units of every arm; "
            f"{_WHOLE_CLUSTERS}",
        )
    if not whole.any() or (lacking and single_arm == "refuse"):
        raise DataError(
            f"{lacking} of {len(whole)} clusters lack units of an arm",
            'if units were assigned one by one, give single_arm="drop" (--single-arm drop) to '
            f"leave such clusters out, or merge them; {_WHOLE_CLUSTERS}",
        )
    return whole, lacking


def _name(name: Any) -> str:
    usable = keys.is_name(name) and len(name) <= _LONGEST and name not in RESERVED
    if usable and not any(each in name for each in _BETWEEN) and name == column_of(name):
        return str(name)
    raise InputError(
        f"the name {checks.shown(name)} of a covariate is not usable",
        f"rename it: up to {_LONGEST} printable characters without ' + ' and ':', not C(...), and "
        f"not one of {', '.join(RESERVED)}",
    )


def _covariate(name: str, values: Any, rows: Ints) -> Covariate:
    """A column of numbers, booleans or texts, one for each row that counts."""
    numbers = private_numbers(values)
    if numbers is None or numbers.ndim != 1:
        texts = keys.as_array(values, name)
        if not pa.types.is_string(texts.type):
            raise DataError(
                f"the covariate {name!r} has the type {texts.type}",
                "convert it to numbers, booleans or texts, for example dates to days",
            )
        distinct, codes = keys.ranked(texts.take(rows), name)
        found = Covariate(name=name, values=tuple(map(str, distinct.to_pylist())), codes=codes)
    else:
        numbers = numbers[rows]
        if not (np.isfinite(numbers) & (np.abs(numbers) <= _LARGEST)).all():
            raise DataError(
                f"the covariate {name!r} has missing, infinite or huge numbers",
                f"give a number of up to {_LARGEST:g} for each unit; fill what is missing with a "
                "public value",
            )
        if 0 < np.abs(numbers).max(initial=0.0) < _SMALLEST:
            raise DataError(
                f"the covariate {name!r} has only numbers below {_SMALLEST:g}",
                "give it in another unit",
            )
        # Zero has one sign: the same column is the same question.
        levels, place = np.unique(numbers + 0.0, return_inverse=True)
        found = Covariate(name=name, values=tuple(levels.tolist()), codes=place)
    if len(found.values) < _FEWEST:
        raise InputError(f"the covariate {name!r} is the same for all units", "leave it out")
    return found
