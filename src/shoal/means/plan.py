"""Plans of unbiased means: judged before any value is read, saved, loaded and carried out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import checks, documents, files
from shoal.means import document as plan_document
from shoal.means.estimate import UnbiasedEstimate
from shoal.means.estimators.normal import CERTIFIED, INTERVALS, NORMAL
from shoal.means.one_value_per_user import Users
from shoal.means.plan_facts import UnbiasedFacts
from shoal.means.release import release_mean
from shoal.means.request import METHODS, Request, counts_of, refuse_publishing
from shoal.privacy.budget import Amount, Budget, show
from shoal.privacy.ledger import Ledger
from shoal.privacy.noise import Simulated
from shoal.release.manifest import CONFIDENCE
from shoal.theory.clipping import Moment, moments_of


@dataclass(frozen=True, eq=False)
class UnbiasedPlan(UnbiasedFacts):
    """A plan of one unbiased mean that can be carried out; see `UnbiasedFacts` for its facts.

    Source: docs/theory/unbiased.md.

    Guarantees: G-LOSS, G-BOUND.

    Example:
        >>> from shoal import unbiased
        >>> found = unbiased.plan(
        ...     "symmetric_mean", 5000, moment=unbiased.Moment(2, 10), epsilon=1, delta="1e-6"
        ... )
        >>> found.bias_bound, found.rmse_bound < 0.3
        (0.0, True)
    """

    def release(
        self,
        values: ArrayLike,
        users: Users | None = None,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "",
        noise: Simulated | None = None,
        confidence: float = 0.95,
        values_name: str = "",
        privacy_unit: str = "",
    ) -> UnbiasedEstimate:
        """Read the values once, draw, record result and charge, deliver.

        The same plan and name again delivers the recorded bytes, says so, and costs nothing.
        Without one, the losses of several releases add up and are not recorded.

        Args:
            values: One number a record, shape (n,), in the value's unit. Private.
            users: Whose record it is, shape (n,); by default each record is a user's only one.
            ledger: The data set's ledger, or its path.
            name: What the release is of, such as a period: another name draws, and costs, again.
            noise: `shoal.Simulated(seed)` for studies; the estimate is marked and not private.
            confidence: Of the returned interval; of a normal one from 0.8 to 0.995.
            values_name: What the values are called, needed with a ledger: two kinds of values of
                the same users are two questions.
            privacy_unit: What a user is, in a word such as "person"; needed with a ledger and
                `users`. Without both each row is protected by itself.

        Returns:
            The mean with its errors, in the value's unit.

        Raises:
            InputError: An argument that is not usable, or a ledger with simulated noise or of
                another privacy unit.
            DataError: The values are not finite numbers or do not have the plan's counts.
            BudgetError: The charge does not fit the ledger's budget.
            LedgerError: The ledger is missing, damaged or cannot be written.

        Guarantees: G-LOSS, G-LEDGER, G-AGAIN, G-REPLAY.
        """
        return release_mean(
            self,
            values,
            users,
            ledger=ledger,
            name=name,
            noise=noise,
            confidence=confidence,
            values_name=values_name,
            privacy_unit=privacy_unit,
        )

    @classmethod
    @np.errstate(all="ignore")
    def from_document(cls, document: documents.Document) -> Self:
        """The inverse of `to_document`; claims are computed anew and compared.

        Args:
            document: The JSON object.

        Returns:
            The plan.

        Raises:
            DocumentError: Damaged, changed by hand, or of another schema.
        """
        found = documents.plain(document, "plan")
        return cls(
            **plan_document.parts(documents.check_schema(found, (plan_document.SCHEMA,), "plan"))
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the plan as a versioned JSON document.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, or the place cannot be written.
        """
        data = documents.canonical_bytes(self.to_document())
        files.write_bytes(path, data, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan written by `save`.

        Args:
            path: A file written by `save`.

        Returns:
            The plan.

        Raises:
            DocumentError: Missing, damaged, changed by hand, or of another schema.
        """
        return cls.from_document(documents.read(path, plan_document.SCHEMA, "plan"))

    def __str__(self) -> str:
        """A few lines."""
        weights = self.estimator.weights
        bounds = ", ".join(f"({m.order:g}, {m.size:g})" for m in self.estimator.moments)
        losses = f"epsilon {show(self.exact_epsilon)}, delta {show(self.exact_delta)}"
        return (
            f"{self.method} of {self.n} users: {losses}\n"
            f"bias at most {self.bias_bound:.4g}{self.estimator.supposes}, root mean squared error "
            "at most "
            f"{self.rmse_bound:.4g}, noise scale {self.noise_scale:.4g}\n"
            f"for central moments (order, size) {bounds}; heaviest user "
            f"{float(weights.share):.3g} of the weight, as good as "
            f"{float(1 / weights.squares):.6g} equal ones\n"
            f"{self.interval_by} {CONFIDENCE:.0%} interval of about "
            f"+-{self.expected_half_width():.4g} if values spread as widely as that"
        )


def plan(
    method: str,
    counts: int | Sequence[int] | NDArray[Any],
    *,
    moment: Moment | Sequence[Moment],
    epsilon: Amount = 0,
    delta: Amount = 0,
    interval: tuple[float, float] | None = None,
    bias: float | None = None,
    publish_values: bool = False,
    weights: str = "equal",
    cap: int | None = None,
    reuse: bool | None = None,
    farthest: float | None = None,
    interval_by: str | None = None,
    source: Mapping[str, Any] | None = None,
) -> UnbiasedPlan:
    """Choose an estimator's parts for the least certified error, before any value is read.

    Users are independent, their values have one mean mu and keep the moments. A user with several
    records counts with their mean. Neighbours differ in all values of one user; counts are public.

    Source: docs/theory/unbiased.md.

    Args:
        method: `clipped_mean`, `sampled_mean`, `clipped_plus_residual` or `symmetric_mean`.
        counts: Number of users with one record each, or records of every user, shape (users,).
        moment: Public bound on a central moment of a user's value, or several that all hold.
        epsilon: Largest epsilon; not for `sampled_mean`.
        delta: Largest delta; not for `clipped_mean`.
        interval: Public interval that holds the mean, in the value's unit; not for
            `symmetric_mean`.
        bias: Budget of `clipped_mean`, in the value's unit.
        publish_values: Must be said for the methods that publish sampled values.
        weights: `equal`, or `counts`: in proportion to a user's records.
        cap: Largest weight with `counts`.
        reuse: Of `symmetric_mean`: all users in both steps or a split; the better unless said.
        farthest: Of `symmetric_mean`: its certificate holds for means of at most this absolute
            value, in the value's unit; 2^20 sizes of the moment unless said. Unbiased and private
            it is for all.
        interval_by: `normal`: squares are released beside the sum, at no cost, and intervals are
            those of a normal approximation; or `certified`: by Chebyshev's inequality, for every
            distribution that keeps the moments, 2.2 to 2.5 times as wide. Normal by default where
            it can be had: not for what is sampled, nor for fewer users than two equal ones.
        source: Public description of the records.

    Returns:
        The plan with the least certified error.

    Raises:
        InputError: An argument that is not usable; a method that cannot be unbiased at delta 0.

    Guarantees: G-LOSS, G-BOUND.

    Example:
        >>> from shoal.unbiased import Moment
        >>> found = plan(
        ...     "clipped_mean", 10**4, moment=Moment(2, 1), epsilon=1, interval=(0, 1), bias=0.01
        ... )
        >>> print(found)
        clipped_mean of 10000 users: epsilon 1, delta 0
        bias at most 0.01, root mean squared error at most 0.01587, noise scale 0.005098
        for central moments (order, size) (2, 1); heaviest user 0.0001 of the weight, as good ...
        normal 95% interval of about +-0.03518 if values spread as widely as that
    """
    checks.choice(method, METHODS, "method")
    refuse_publishing(method, publish_values=publish_values)
    request = Request(
        method,
        counts_of(counts),
        moments_of(moment),
        Budget.of(epsilon, delta),
        interval=interval,
        bias=checks.optional(bias, checks.number, "bias"),
        weights=weights,
        cap=checks.optional(cap, checks.whole, "cap", least=1, example=10),
        reuse=reuse,
        farthest=checks.optional(farthest, checks.number, "farthest"),
    )
    about = checks.optional(source, checks.public_facts, "source", flat=True)
    estimator = request.estimator()
    by = NORMAL if estimator.may_be_normal else CERTIFIED
    if interval_by is not None:
        by = checks.choice(interval_by, INTERVALS, "interval_by")
    if by == NORMAL:
        request, estimator = replace(request, interval_by=by), estimator.with_squares()
    return UnbiasedPlan(request, estimator, about)
