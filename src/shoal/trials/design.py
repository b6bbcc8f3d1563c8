"""Holds the public columns of an experiment: clusters, arms and covariates of units.

Units that are equal in all public columns are one kind, and have no order. All of it is public.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field, PlainSerializer

from shoal import checks, documents
from shoal.arrays import Floats, Ints
from shoal.data import keys
from shoal.documents.model import Integers, Model, checked
from shoal.errors import DocumentError, InputError, printable
from shoal.files.text_table import counted
from shoal.privacy.budget import MOST_EPSILON, Amount, Budget

# A fraction in documents.
AS_TEXT = PlainSerializer(str, return_type=str)
ARM = "arm"
CLUSTER = "cluster"
CONSTANT = "constant"
# No covariate can have these names, which have a meaning in questions.
RESERVED = {ARM: "the treatment", CLUSTER: "clusters", CONSTANT: "the constant"}
_CATEGORY = re.compile(r"C\((.*)\)", re.DOTALL)


def _keys(name: str) -> tuple[BeforeValidator, PlainSerializer]:
    """Returns the functions that read a column of keys from its document, and write it."""

    def read(found: Any) -> Any:
        document = isinstance(found, dict)
        return keys.from_document(found).column(name).combine_chunks() if document else found

    def written(found: Any) -> Any:
        return None if found is None else keys.to_document(pa.table({name: found}))

    return BeforeValidator(read), PlainSerializer(written)


def _clustering(epsilon: Amount) -> Fraction:
    """Returns the exact loss of making the clusters, and refuses one that is too large."""
    found = Budget.of(epsilon).epsilon
    if found > MOST_EPSILON:
        raise InputError("clustering_epsilon is above 1e6", "give the privacy loss of the clusters")
    return found


class Covariate(Model):
    """A public column: its distinct values, rising, and which of them each kind of unit has.

    Numbers may be `rounded` to steps of their range.
    """

    name: str
    values: tuple[float, ...] | tuple[str, ...]
    codes: Integers
    rounded: bool = Field(default=False, exclude_if=lambda each: not each)

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return not isinstance(self.values[0], str)


class Design(Model):
    """All kinds of units, sorted by cluster, arm, assigned group and covariates.

    Attributes:
        clusters: The clusters' keys, sorted.
        arms: The arms' keys, control first, then sorted.
        cell: Cell of each kind, which is cluster times the number of arms plus arm; rising, and
            every arm of every cluster has a kind.
        many: Units of each kind, from 1.
        group: Group of each kind, codes from 0, if groups were assigned to arms whole.
        covariates: The covariates, in the order of their names.
        units: A public name of every unit, kind after kind, or None.
        clustering_epsilon: The loss by which private clusters were made.
    """

    clusters: Annotated[Any, *_keys("cluster")]
    arms: Annotated[Any, *_keys("arm")]
    cell: Integers
    many: Integers
    group: Integers | None = None
    covariates: tuple[Covariate, ...] = ()
    units: Annotated[Any, *_keys("unit")] = None
    clustering_epsilon: Annotated[Fraction, checked(_clustering), AS_TEXT] = Fraction(0)

    @property
    def n(self) -> int:
        """The number of units."""
        return int(self.many.sum())

    @cached_property
    def sizes(self) -> Ints:
        """Units of each cell, shape (clusters, arms), all above 0."""
        shape = len(self.clusters), len(self.arms)
        found = np.bincount(self.cell, self.many, shape[0] * shape[1]).astype(np.int64)
        return found.reshape(shape)

    def __str__(self) -> str:
        """The numbers of units, clusters and arms."""
        clusters = counted(len(self.clusters), "cluster")
        arms = len(self.arms)
        return f"{counted(self.n, 'unit')} in {clusters}, {arms} arms"

    @cached_property
    def arm(self) -> Ints:
        """Arm of each kind, 0 for control."""
        return self.cell % len(self.arms)

    @cached_property
    def cluster(self) -> Ints:
        """Cluster of each kind."""
        return self.cell // len(self.arms)

    @cached_property
    def kind_of_unit(self) -> Ints:
        """Kind of each unit, rising."""
        return np.repeat(np.arange(len(self.many)), self.many)

    @property
    def cell_of_unit(self) -> Ints:
        """Cell of each unit, rising."""
        return self.cell[self.kind_of_unit]

    @property
    def arm_names(self) -> list[str]:
        """Names of the arms, control first."""
        return [str(key_text(each)) for each in self.arms.to_pylist()]

    def covariate(self, name: str) -> Covariate:
        """Returns a covariate, or the clusters as one; `C(age)` has the numbers as texts."""
        if name == CLUSTER:
            if len(self.clusters) == 1:
                raise InputError(
                    "all units are in one cluster", "give clusters, or leave cluster out"
                )
            named = tuple(str(key_text(each)) for each in self.clusters.to_pylist())
            return Covariate(name=CLUSTER, values=named, codes=self.cluster)
        for each in self.covariates:
            if each.name == name:
                return each
        if column_of(name) != name:
            found = self.covariate(column_of(name))
            return Covariate(name=name, values=tuple(map(_text, found.values)), codes=found.codes)
        raise InputError(
            f"there is no public column {checks.shown(name)}",
            f"choose one of {', '.join([CLUSTER, *(each.name for each in self.covariates)])}, or "
            "give it as a covariate, if it is public; in regressions the treatment is called arm",
        )

    def codes(self, names: Sequence[str]) -> Ints:
        """Returns the group of each kind by the values of columns, from 0 in their order."""
        found = np.zeros(len(self.cell), dtype=np.int64)
        for name in names:
            if name == ARM:
                codes = self.arm
                many = len(self.arms)
            else:
                column = self.covariate(name)
                codes = column.codes
                many = len(column.values)
            found = np.unique(found * many + codes, return_inverse=True)[1].astype(np.int64)
        return found

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the whole design."""
        return documents.digest(self.to_document())

    def model_post_init(self, _: Any) -> None:
        """Refuse columns of another length than kinds, and codes that do not number values."""
        kinds = len(self.cell)
        # Each column of codes, and how many values they number, each of which occurs.
        columns = [(each.codes, len(each.values)) for each in self.covariates]
        if self.group is not None:
            columns.append((self.group, int(self.group.max()) + 1))
        fits = (
            kinds == len(self.many) > 0
            and all(
                len(codes) == kinds and len(np.unique(codes)) == values > int(codes.max())
                for codes, values in columns
            )
            and int(self.cell.max()) < len(self.clusters) * len(self.arms)
            and int(self.many.min()) > 0
            and int(self.sizes.min()) > 0
            and (self.units is None or len(self.units) == self.n)
        )
        if not fits:
            raise DocumentError("the columns do not fit the units", "fetch the file again")


def column_of(name: str) -> str:
    """Returns the covariate that a name in a question is about: `age` for `C(age)`."""
    category = _CATEGORY.fullmatch(name)
    return category[1] if category else name


def _text(value: float | str) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def key_text(value: Any) -> Any:
    """Returns a key as JSON can hold it, with dates and times as ISO texts."""
    return value.isoformat() if hasattr(value, "isoformat") else value


def effect_weights(
    design: Design, arm: int, group: Covariate | None = None, shares: Floats | None = None
) -> Floats:
    """Returns the weights of kinds in an effect, for all units or for each subgroup of `group`.

    The effect is the sum over clusters of share (mean of arm - mean of control). The share of a
    cluster is its part of the units of all arms, unless `shares` are given.
    """
    many = design.many
    codes = np.zeros_like(design.cell) if group is None else group.codes
    # The place of each kind: its subgroup in its cluster.
    place = np.unique(codes * len(design.clusters) + design.cluster, return_inverse=True)[1]
    # A kind is in control (0), in the arm (1) or in another arm (2).
    role = np.full_like(design.arm, 2)
    role[design.arm == 0] = 0
    role[design.arm == arm] = 1
    sizes = np.bincount(place * 3 + role, many, 3 * (int(place.max()) + 1)).reshape(-1, 3)
    if group is not None and not sizes[:, :2].all():
        raise _lacking(design, arm, group)
    share = np.bincount(place, many)[place] / np.bincount(codes, many)[codes]
    if shares is not None:
        share = shares[design.cluster]
    signed = np.where(role == 1, share, -share)
    weight = np.where(role < 2, signed / sizes[place, role], 0.0)
    # A row for each subgroup, in which kinds of other subgroups have no weight.
    found = np.zeros((int(codes.max()) + 1, len(codes)))
    found[codes, np.arange(len(codes))] = weight
    return found


def _lacking(design: Design, arm: int, group: Covariate) -> InputError:
    """Returns the error that says which part of a cluster has nobody in an arm."""
    shape = len(design.clusters), len(group.values), len(design.arms)
    place = (design.cluster * shape[1] + group.codes) * shape[2] + design.arm
    count = np.bincount(place, minlength=shape[0] * shape[1] * shape[2]).reshape(shape)
    lacking_cells = np.argwhere(count.any(axis=2) & (count[:, :, [0, arm]] == 0).any(axis=2))
    cluster, value = lacking_cells[0].tolist()
    missing = arm if count[cluster, value, arm] == 0 else 0
    where = f" of the cluster {design.clusters[cluster].as_py()}" if shape[0] > 1 else ""
    return InputError(
        f"no unit where {group.name} is {_text(group.values[value])}{where} is in the arm "
        f"{printable(design.arm_names[missing])!r} ({len(lacking_cells)} such cells)",
        "merge subgroups or clusters until each has units of both arms, or ask for a regression "
        "on the covariate",
    )
