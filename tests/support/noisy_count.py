"""A family of its own: one noisy count of users above a limit, by the base classes alone."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa

from shoal import documents
from shoal.documents.model import Model
from shoal.files.text_table import TextTable
from shoal.privacy.accounting import NoisyVector, Step
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Noise, Simulated
from shoal.privacy.unit import Unit
from shoal.release import envelope, release
from shoal.release import plan as plans
from shoal.release.envelope import CONFIDENCE, Published
from shoal.theory import laplace
from shoal.verification import recount, rederive

KIND = "noisy count"
PERSON = Unit("person", "public")


class Request(Model):
    """A limit, and noise of scale 2^bits."""

    limit: float
    bits: int
    epsilon: None = None
    delta: int = 0


class PlanDocument(plans.PlanDocument):
    """A plan."""

    request: Request
    claims: plans.Claims


class Result(Model):
    """What was drawn."""

    steps: int


class Record(envelope.Record):
    """All of a release."""

    kind: Literal["noisy count"]
    records: dict[str, str]
    plan: PlanDocument
    results: Result


@dataclass(frozen=True, eq=False)
class Plan(plans.Plan[list[float], int]):
    """How many values, one of each user, are above a limit; a user moves the count by one."""

    request: Request
    meanwhile: Any = field(default=lambda: None, repr=False)

    family = kind = KIND
    document_model, claims_model, record_model = PlanDocument, plans.Claims, Record
    manifest_model = envelope.Manifest
    neighbours = "values: the value of one user changes"

    @property
    def steps(self) -> list[Step]:
        """One number."""
        return [NoisyVector("laplace", self.request.bits, np.array([1]))]

    @property
    def parts(self) -> Mapping[str, Any]:
        """Limit and noise."""
        return {"request": self.request}

    @property
    def asked(self) -> documents.Document:
        """All of it."""
        return self.request.to_document()

    @classmethod
    def of_document(cls, document: Any) -> Self:
        """The same limit and noise."""
        return cls(document.request)

    def check(self, private: list[float]) -> None:
        """Whatever comes is fine."""

    def draw(self, private: list[float], noise: Noise) -> int:
        """Counts, and adds noise; tests do something meanwhile."""
        self.meanwhile()
        count = int((np.array(private) > self.request.limit).sum())
        return noise.add_laplace([count], self.request.bits)[0]

    def results(self, drawn: int) -> Any:
        """The count."""
        return {"steps": drawn}

    def published(self, drawn: int) -> Published:
        """All of it: there is no row of a user."""
        return Published(plan=self.to_document(), results=self.results(drawn))

    def drawn_of(self, results: Any) -> int:
        """The count."""
        return int(results["steps"])

    def _text(self) -> TextTable:
        return TextTable(
            f"values above {self.request.limit:g}", ["bits"], [[str(self.request.bits)]]
        )

    def release(
        self, values: list[float], ledger: str | os.PathLike[str] | Ledger | None, name: str = "",
        noise: Simulated | None = None,
    ) -> "Release":  # fmt: skip
        """Draws and records."""
        done = self.deliver(values, {"of": "v"}, PERSON, name=name, ledger=ledger, noise=noise)
        return Release.delivered(done, self, ledger)


class Release(release.TableRelease[Plan, int]):
    """A release of one count."""

    plan_model = Plan

    def table(self, confidence: float = CONFIDENCE, *, all: bool = False) -> pa.Table:
        """One row."""
        half = laplace.tail_quantile(2.0**self.plan.request.bits, 1 - confidence)
        count = self.released
        return pa.table({"count": [count], "low": [count - half], "high": [count + half]})


# Whoever verifies finds the family by its kind; its recount has nothing to add.
rederive.FAMILIES[KIND] = Release
recount.KINDS[KIND] = (lambda plan, results: {}, lambda _: iter(()))
