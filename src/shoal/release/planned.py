"""What plans of all families share: a stated loss, columns of a file, and how they are saved."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Literal, TypeVar

from shoal import documents, files
from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.privacy.budget import Budget, round_up
from shoal.release.envelope import Text

P = TypeVar("P", bound="Planned")


class Source(Model):
    """Columns of the file that a plan of a mean or a trial is for: their names, all public."""

    value: Text
    missing: Literal["refuse", "public"] = "refuse"
    single_arm: Literal["refuse", "drop"] = "refuse"
    user: Text | None = None
    arm: Text | None = None
    cluster: Text | None = None
    unit: Text | None = None
    assigned: Text | None = None
    privacy_unit: Text | None = None


def called(source: Source | None, name: str) -> str:
    """The private column's name: that of the plan's file, or what the caller says without one."""
    if source is None or name in ("", source.value):
        return name or (source.value if source else "")
    raise InputError(
        f"the values are called {name!r}, and the plan is for {source.value!r}",
        "give the column that the plan is for, or plan again",
    )


def with_source(plan: P, source: Source) -> P:
    """The same plan, which says for which columns of a file it is."""
    found = copy(plan)
    object.__setattr__(found, "source", source)
    return found


class Stated:
    """What states a loss."""

    @property
    @abstractmethod
    def loss(self) -> Budget:
        """What is stated and charged."""

    @property
    def epsilon(self) -> float:
        """The privacy loss, rounded upwards."""
        return round_up(self.loss.epsilon)

    @property
    def delta(self) -> float:
        """The delta of (epsilon, delta)-differential privacy, rounded upwards; 0 if pure."""
        return round_up(self.loss.delta)


class Planned(Stated):
    """A plan that can be saved."""

    @abstractmethod
    def to_document(self) -> documents.Document:
        """The plan as a JSON object."""

    @property
    def _sources(self) -> Mapping[str, str | None]:
        """Files that the plan was made from, which saving never replaces."""
        return {}

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the plan as a versioned JSON document.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, the place cannot be written, or it is that of
                the records, or of the plan that was loaded, which are never replaced.

        Guarantees: G-REFUSE.
        """
        data = documents.canonical_bytes(self.to_document())
        files.write_bytes(path, data, self._sources, overwrite=overwrite)
