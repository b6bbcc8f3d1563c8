"""Plans and manifests of unbiased means as documents: request, counts, choice, and claims.

Claims are for readers: reading a plan back computes loss and errors from the choice alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from shoal.documents.model import Integers, Model
from shoal.means.coarse import Coarse
from shoal.means.middle import Half, Middle, Shift
from shoal.means.noisy_sum import Grid, NoisySum
from shoal.means.request import Request
from shoal.means.squares import NoisySquares
from shoal.release.manifest_model import Exact, ManifestModel, Text

SCHEMA, KIND = "shoal.mean-plan/2", "mean"


class Drawn(NamedTuple):
    """The whole numbers that one draw gives, public; all of them None where there is no estimate.

    `steps` is the weighted sum with noise in steps of the noise, `squares` the sum of squares with
    noise in steps of its own, `guess` bin and offset of the centre that both are about.
    """

    steps: int | None
    squares: int | None = None
    guess: tuple[int, int] | None = None


class ClippedChoice(Model):
    """Where values are clipped, the noise on their sum, and squares beside it."""

    grid: Grid
    noise: NoisySum
    squares: NoisySquares | None = None


class SymmetricChoice(Model):
    """The steps of a symmetric mean: ticks are 2^-shift bins, and `half` is c, in ticks."""

    coarse: Coarse
    middle: Middle | None
    shift: Shift
    half: Half
    noise: NoisySum
    squares: NoisySquares | None = None


class Claims(Model):
    """What a plan costs and promises; bounds in the value's unit."""

    epsilon: Exact
    delta: Exact
    bias_bound: float
    standard_error: float
    rmse_bound: float
    failure_bound: float
    noise_scale: float
    half_width: float


class PlanDocument(Model):
    """A plan of an unbiased mean."""

    schema_: Literal["shoal.mean-plan/2"] = Field(default="shoal.mean-plan/2", alias="schema")
    version: Text
    neighbours: Literal["values"] = "values"
    request: Request
    counts: Integers
    choice: ClippedChoice | SymmetricChoice
    claims: Claims


class Records(Model):
    """What the values are called."""

    value: Text


class Result(Model):
    """The whole numbers that were drawn, and what follows; all None where there is no estimate.

    `certified_interval` holds for every distribution that keeps the moments.
    """

    steps: int | None
    squares: int | None
    guess: tuple[int, int] | None
    value: float | None
    interval: tuple[float, float] | None
    certified_interval: tuple[float, float] | None


class Manifest(ManifestModel):
    """Everything public about a release of an unbiased mean."""

    kind: Literal["mean"]
    records: Records
    plan: PlanDocument
    results: Result
