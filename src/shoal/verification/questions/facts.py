"""What the second opinion on questions reads from a manifest: public columns and whole numbers.

Nothing is imported from other packages, as in `verify`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.documents import Document
from shoal.verification.questions.whole_forms import Form, check_groups
from shoal.verification.strict import integers, rational, real, text, whole
from shoal.verification.trials.facts import keys_of_column, levels_of

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
BITS = 32
_MOST_ROW, _MOST_UNITS, _MOST_NUMBERS = 2**40, 2**20, 512
_FEWEST, _MOST_ARMS, _LONGEST_NAME = 2, 64, 100
_RESERVED = {"arm", "cluster", "constant"}


@dataclass(frozen=True, eq=False)
class Covariate:
    """A public column.

    Attributes:
        values: Numbers, or texts.
        codes: Which of them each unit has.
    """

    values: list[object]
    codes: Whole

    @property
    def texts(self) -> bool:
        """Whether values are texts."""
        return isinstance(self.values[0], str)


@dataclass(frozen=True, eq=False)
class Facts:
    """Public facts of a release of questions.

    Attributes:
        low: Lowest outcome.
        width: Of the outcome's range.
        arms: Names of the arms, control first.
        arm: Of each unit.
        cluster: Of each unit.
        covariates: Clusters among them.
        ordered: Whether units come in the order of their public columns.
        spread: The stated standard deviation.
        asked: The privacy loss that was asked for.
        rows: Weights as whole numbers, numbers x units.
        steps: Of each number.
        moment_step: Of the second moments.
        by: Columns that make groups of second moments, besides arms.
        assigned: Group of each unit where groups were assigned whole, or None.
        forms: Variances of the questions where they were.
    """

    low: float
    width: float
    arms: list[str]
    arm: Whole
    cluster: Whole
    covariates: dict[str, Covariate]
    ordered: bool
    spread: float
    asked: Fraction
    rows: Whole
    steps: Whole
    moment_step: int
    by: list[str]
    assigned: Whole | None
    forms: list[Form]

    @classmethod
    def of(cls, plan: Document) -> Facts:
        """Read and check; ValueError, KeyError or TypeError if something is wrong."""
        levels = levels_of(plan["space"])
        assignment = plan["columns"]["assignment"]
        clusters, places = keys_of_column(assignment["clusters"], "cluster")
        arms, order = keys_of_column(assignment["arms"], "arm")
        if not _FEWEST <= len(arms) <= _MOST_ARMS or not clusters:
            raise ValueError
        sizes = integers(assignment["sizes"], "sizes", len(clusters) * len(arms))
        units = int(sizes.astype(object).sum())
        table = sizes.reshape(len(clusters), len(arms))
        if units > _MOST_UNITS or int(sizes.min()) < 1 or int(table.sum(axis=0).min()) < _FEWEST:
            raise ValueError
        group = np.repeat(np.arange(len(sizes)), sizes)
        home = group // len(arms)
        given = _covariates(plan["columns"]["covariates"], units)
        rising = all(map(_less, places, places[1:])) and all(map(_less, order[1:], order[2:]))
        rows, steps = _numbers(plan["numbers"], units)
        columns = {**given, "cluster": Covariate([str(each) for each in clusters], home)}
        arm = group - home * len(arms)
        assigned, forms = _assigned(plan, arm, home)
        own = list(given.values())
        codes = [each.codes for each in own] + ([] if assigned is None else [assigned])
        return cls(
            low=float(levels[0]),
            width=float(levels[-1] - levels[0]),
            arms=[str(each) for each in arms],
            arm=arm,
            cluster=home,
            covariates=columns,
            ordered=rising and _ordered(group, codes) and assignment["units"] is None,
            spread=real(plan["spread"]),
            asked=rational(plan["epsilon"]),
            rows=rows,
            steps=steps,
            moment_step=whole(plan["numbers"]["moment_step"], 0 if forms else 1, 2**61),
            by=_names(plan["numbers"]["groups_by"], columns),
            assigned=assigned,
            forms=forms,
        )

    @property
    def units(self) -> int:
        """How many there are."""
        return len(self.arm)

    def groups(self, by: list[str], *, arms: bool) -> Whole:
        """Groups of units by columns, in the order of arms, then of values."""
        own = [self.arm.tolist()] if arms else [[0] * self.units]
        every = list(zip(*own, *(self.covariates[name].codes.tolist() for name in by), strict=True))
        place = {key: at for at, key in enumerate(sorted(set(every)))}
        return np.array([place[key] for key in every])

    @property
    def middle(self) -> float:
        """Of the range."""
        return self.low + self.width / 2


def _names(by: list[object], columns: dict[str, Covariate]) -> list[str]:
    """Names of columns, each once."""
    names = [text(each) for each in by]
    if len(set(names)) != len(names) or not set(names) <= columns.keys():
        raise ValueError
    return names


def _less(one: object, other: object) -> bool:
    return bool(one < other)  # type: ignore[operator]


def _is_name(name: str) -> bool:
    """Whether a covariate can be called so, and no formula is read as a name."""
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and " + " not in name


def _covariates(documents: list[Document], units: int) -> dict[str, Covariate]:
    names = [text(each["name"]) for each in documents]
    if sorted(set(names)) != names or _RESERVED & set(names) or not all(map(_is_name, names)):
        raise ValueError
    found = {}
    for each in documents:
        values, codes = each["values"], integers(each["codes"], "codes", units)
        kind = type(values[0])
        one = kind in {float, str} and all(type(value) is kind for value in values)
        if not one or len(values) < _FEWEST or int(codes.max()) >= len(values):
            raise ValueError
        used = np.bincount(codes, minlength=len(values))
        compared = [value.encode() for value in values] if kind is str else values
        rises = all(low < high for low, high in itertools.pairwise(compared))
        if not rises or not used.all():
            raise ValueError
        found[each["name"]] = Covariate(values, codes)
    return found


def _assigned(plan: Document, arm: Whole, cluster: Whole) -> tuple[Whole | None, list[Form]]:
    """Assigned groups and the forms that they have; both or none."""
    columns, numbers = plan["columns"], plan["numbers"]
    if ("assigned" in columns) != ("forms" in numbers):
        raise ValueError
    if "assigned" not in columns:
        return None, []
    assigned = integers(columns["assigned"], "assigned", len(arm))
    if not check_groups(assigned, arm, cluster):
        raise ValueError
    if numbers["moment_step"] != 0 or numbers["groups_by"]:
        raise ValueError
    groups = int(assigned.max()) + 1
    return assigned, [Form.of(each, len(arm), groups) for each in numbers["forms"]]


def _ordered(group: Whole, codes: list[Whole]) -> bool:
    """Whether no unit comes after one whose public columns are larger: order says nothing."""
    keys = zip(group.tolist(), *(each.tolist() for each in codes), strict=True)
    return all(one <= other for one, other in itertools.pairwise(keys))


def _numbers(document: Document, units: int) -> tuple[Whole, Whole]:
    steps = integers(document["steps"], "steps")
    if not 0 < len(steps) <= _MOST_NUMBERS or int(steps.min()) < 1 or int(steps.max()) > 2**61:
        raise ValueError
    rows = integers(document["rows"], "rows", len(steps) * units).reshape(len(steps), units)
    if int(rows.max()) > 2 * _MOST_ROW:
        raise ValueError
    if whole(document["lattice_bits"]) != BITS:
        raise ValueError
    return rows - _MOST_ROW, steps
