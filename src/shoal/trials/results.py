"""Holds effects and answers with their intervals, and shows them as text, tables and documents."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import pyarrow as pa

from shoal import checks, documents
from shoal.arrays import Floats
from shoal.errors import InputError, printable
from shoal.files.tables import Tabular
from shoal.files.text_table import Shown, TextTable, digits_of, first_rows, text_of
from shoal.trials.design import key_text

Result = TypeVar("Result")


class Documented:
    """A result that can be written as a JSON object."""

    def to_document(self) -> documents.Document:
        """The result as a JSON object, in which unknown and infinite numbers are null.

        Returns:
            Names and numbers.
        """
        found: documents.Document = _to_json(self)
        return found


@dataclass(frozen=True, kw_only=True)
class Estimated(Documented):
    """A standard error and an interval, of an effect or of an answer."""

    standard_error: float
    interval: tuple[float, float]
    confidence: float

    @property
    def columns(self) -> dict[str, float]:
        """The columns that tables show."""
        low, high = self.interval
        return {"standard_error": self.standard_error, "low": low, "high": high}

    def in_words(self) -> str:
        """Returns the interval with its confidence, as text."""
        low, high = self.interval
        if math.isnan(low):
            return "no interval"
        n = digits_of(low, high, 3)
        return f"{100 * self.confidence:.4g}% [{low:.{n}g}, {high:.{n}g}]"


@dataclass(frozen=True, kw_only=True)
class Inference(Estimated):
    """A standard error and a confidence interval; NaN where the release does not determine them.

    Source: docs/theory/experiments.md#these-units; docs/theory/experiments.md#degrees-of-freedom.

    Attributes:
        standard_error: Standard error of the effect, in the outcome's unit.
        interval: Interval in the outcome's unit. It reaches Student's quantile times the standard
            error to either side or, with Laplace noise, the quantile of the sum of both errors
            (`shoal.intervals.half_width`).
        confidence: Confidence of this interval alone: many intervals do not all cover at once.
        degrees_of_freedom: Degrees of freedom of the t quantile; infinite for a normal one.
        about: One sentence that says what the interval covers, or why there is none.

    Guarantees: G-COVERAGE.
    """

    degrees_of_freedom: float
    about: str


@dataclass(frozen=True, eq=False)
class ClusterEffects:
    """The effect in every cluster, in the order of the clusters.

    Attributes:
        names: The clusters' keys.
        value: Mean of the arm less mean of control, in the outcome's unit.
        standard_error: Standard error for the cluster's units; NaN where an arm has one unit or no
            variance.
        weight: The cluster's part n_c/n of all units.
    """

    names: tuple[object, ...]
    value: Floats
    standard_error: Floats
    weight: Floats

    def __str__(self) -> str:
        """One line a cluster: its name, effect, standard error and part of the units."""
        columns = self.value.tolist(), self.standard_error.tolist(), self.weight.tolist()
        return "\n".join(
            f"  {printable(str(name))}: {value:.6g}"
            + ("" if math.isnan(error) else f", standard error {error:.3g}")
            + f", {weight:.3g} of the units"
            for name, value, error, weight in zip(self.names, *columns, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Effect(Documented):
    """The effect of one arm against control, in the outcome's unit.

    Source: docs/theory/experiments.md#inference.

    Attributes:
        arm: The arm's name.
        control: The name of the arm that it is compared with.
        value: sum_c (n_c/n) (mean of the arm - mean of control), in the outcome's unit.
        finite_population: Inference about the effect on these units.
        super_population: Inference about the population of clusters that they came from; with one
            cluster, about the population of its units.
        clusters: The effect in each cluster.
        warning: Why intervals may cover less often than they say; empty if they do not.
        groups: Numbers of groups that were assigned whole, of the arm and of control; None if units
            were assigned one by one.

    Guarantees: G-COVERAGE, G-UNBIASED.

    Example:
        >>> from shoal import trials
        >>> study = trials.Experiment([0, 1] * 1000)
        >>> plan = study.table(trials.Domain.binary(), epsilon=4)
        >>> effect = plan.release([0, 1, 1, 1] * 500, study).estimate()[0]
        >>> low, high = effect.finite_population.interval
        >>> effect.arm, effect.control, abs(effect.value - 0.5) < 0.3, low < effect.value < high
        (1, 0, True, True)
    """

    arm: object
    control: object
    value: float
    finite_population: Inference
    super_population: Inference
    clusters: ClusterEffects = field(repr=False)
    warning: str = ""
    groups: tuple[int, int] | None = None

    def warned(self, why: str) -> "Effect":
        """Returns the effect with one more warning, if there is one."""
        return replace(self, warning="; ".join(filter(None, [why, self.warning])))

    def __str__(self) -> str:
        """A line for these units, one for the population they came from, and any warning."""
        many = "clusters" if len(self.clusters.value) > 1 else "units"
        arms = f"{printable(str(self.arm))} against {printable(str(self.control))}"
        here = f"{arms}: {self.value:.6g}, {self.finite_population.in_words()} for these units"
        if self.groups:
            here += f", {self.groups[0]} and {self.groups[1]} groups assigned whole"
        lines = [here, f"{self.super_population.in_words()} for {many} like these"]
        if self.warning:
            lines.append(f"warning: {self.warning}")
        return "\n".join(lines)


class Listed(Tabular, Generic[Result]):
    """Results in an order, found by their names or places."""

    every: tuple[Result, ...]
    # The attribute that names a result.
    _name: ClassVar[str]

    @abstractmethod
    def _row(self, result: Result) -> dict[str, object]:
        """Returns a result as a row of the table."""

    def table(self) -> pa.Table:
        """All results as a table.

        Returns:
            One row a result, with the columns that the class names.
        """
        return pa.Table.from_pylist([self._row(each) for each in self.every])

    def __iter__(self) -> Iterator[Result]:
        return iter(self.every)

    def __len__(self) -> int:
        return len(self.every)

    def __getitem__(self, name: object) -> Result:
        """The result with this name or, if none has it, at this place."""
        names = [getattr(each, self._name) for each in self.every]
        for result_name, result in zip(names, self.every, strict=True):
            if result_name == name and type(result_name) is type(name):
                return result
        if isinstance(name, int) and not isinstance(name, bool) and -len(self) <= name < len(self):
            return self.every[name]
        raise InputError(
            f"there is no {self._name} {checks.shown(name)}",
            f"choose one of {', '.join(repr(each) for each in names[:10])}",
        )


@dataclass(frozen=True, eq=False)
class Effects(Listed[Effect]):
    """The effects of all arms against control.

    `table` has one row an arm: arm, control, value, standard_error, low, high for these units,
    planned_half_width without privacy, and the warning, if there is one.

    Attributes:
        every: One effect for each arm besides the control.
        planned_half_width: Half of the 95% interval that the plan predicts without privacy, in the
            outcome's unit, with which intervals can be compared.
    """

    every: tuple[Effect, ...]
    planned_half_width: float = math.nan

    _name = "arm"

    @classmethod
    def of_documents(cls, found: Sequence[documents.Document]) -> "Effects":
        """Returns effects from their JSON objects, without effects in single clusters."""
        nobody = np.zeros(0)
        clusters = ClusterEffects((), nobody, nobody, nobody)
        effects = []
        for each in found:
            changed: dict[str, Any] = {"clusters": clusters}
            for name in ("finite_population", "super_population"):
                changed[name] = Inference(**_from_json(each[name]))
            groups = each["groups"] and tuple(each["groups"])
            effects.append(Effect(**{**each, **changed, "groups": groups}))
        return cls(tuple(effects))

    def _row(self, result: Effect) -> dict[str, object]:
        return {
            "arm": str(key_text(result.arm)),
            "control": str(key_text(result.control)),
            "value": result.value,
            **result.finite_population.columns,
            "planned_half_width": self.planned_half_width,
            "warning": result.warning,
        }

    def __str__(self) -> str:
        """Each effect with its intervals, and the half width without privacy."""
        lines = [str(each) for each in self.every]
        if not math.isnan(self.planned_half_width):
            half = f"±{self.planned_half_width:.3g} (95%)"
            lines.append(f"without privacy the plan predicts at most {half}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = f"effects against {printable(str(key_text(self.every[0].control)))}"
        notes = [each.warning for each in self.every if each.warning]
        columns = ["arm", "value", "standard_error", "low", "high"]
        return first_rows(head, self.table().select(columns), notes).to_html()


@dataclass(frozen=True, kw_only=True)
class Answer(Estimated):
    """The answer to one question, in the outcome's unit; of a regressor, for each unit of it.

    Attributes:
        question: The question's name.
        statistic: `effect`, `mean` or `coefficient`.
        arm: The arm that an effect or a mean is of.
        control: The arm that an effect is against.
        by: The column of the subgroups of an effect, or the formula of a coefficient.
        subgroup: The value of the column that the subgroup has, or the regressor.
        value: Unbiased estimate of the weighed sum of outcomes.
        standard_error: Estimated standard error of sampling and noise together: half the 95%
            interval divided by 1.96, which allows for the noise of the estimated variance.
        predicted: The standard error that the plan predicted, for the stated standard deviation.
        interval: Lowest and highest value, in the same unit.
        confidence: Confidence of this interval alone: many intervals do not all cover at once.
    """

    question: str
    statistic: str
    arm: str = ""
    control: str = ""
    by: str = ""
    subgroup: str = ""
    value: float
    predicted: float


@dataclass(frozen=True)
class Answers(Shown, Listed[Answer]):
    """Answers to several questions, in the order in which they were asked.

    `table` has one row a question: question and its parts (statistic, arm, control, by, subgroup),
    value, low, high, standard_error (estimated), predicted_standard_error.

    Attributes:
        every: The answers.
        head: A line that says what they are about.
        warnings: Sentences on intervals that may be too short.
    """

    every: tuple[Answer, ...]
    head: str = ""
    warnings: tuple[str, ...] = ()

    _name = "question"

    @classmethod
    def of_documents(
        cls, found: Sequence[documents.Document], head: str, warnings: Sequence[str]
    ) -> "Answers":
        """Returns answers from their JSON objects."""
        answers = []
        for each in found:
            low, high = each["interval"]
            # Only ends of ratios may be infinite, which JSON does not have.
            ends = -math.inf if low is None else low, math.inf if high is None else high
            answers.append(Answer(**_from_json(each | {"interval": ends})))
        return cls(tuple(answers), head, tuple(warnings))

    def _row(self, result: Answer) -> dict[str, object]:
        parts = ("question", "statistic", "arm", "control", "by", "subgroup", "value")
        low, high = result.interval
        return {name: getattr(result, name) for name in parts} | {
            "low": low,
            "high": high,
            "standard_error": result.standard_error,
            "predicted_standard_error": result.predicted,
        }

    def _text(self) -> TextTable:
        """Returns the answers as text, with a row for each question."""
        rows = []
        for each in self.every:
            digits = digits_of(*each.interval)
            value, *ends = (text_of(number, digits) for number in (each.value, *each.interval))
            errors = f"{each.standard_error:.3g}", f"{each.predicted:.3g}"
            rows.append([printable(each.question), value, *errors, *ends])
        level = f"{100 * self.every[0].confidence:.4g}%"
        columns = "question", "value", "estimated SE", "predicted SE", f"{level} low", "high"
        notes = ["estimated SE: half of the 95% interval over 1.96"]
        return TextTable(self.head, columns, rows, notes, self.warnings)


def _from_json(found: documents.Document) -> dict[str, Any]:
    """Returns values of a JSON object for a result: null becomes NaN, and a list a tuple."""

    def number(each: Any) -> Any:
        if isinstance(each, list | tuple):
            return tuple(map(number, each))
        return math.nan if each is None else each

    return {name: number(each) for name, each in found.items()}


def _to_json(value: Any) -> Any:
    """Returns results as JSON can hold them, with null for unknown and infinite numbers."""
    if is_dataclass(value):
        return {each.name: _to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, np.ndarray | tuple):
        return [_to_json(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return key_text(value)
