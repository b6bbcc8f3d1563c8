"""What one release of an unbiased mean delivers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal import documents, files
from shoal.checks.frozen import cached_property
from shoal.privacy.displayed_loss import round_up
from shoal.release.booking import told

if TYPE_CHECKING:
    import os

    from shoal.means.estimators.base import Estimator
    from shoal.privacy.ledger.ledger import Entry

SCHEMA = "shoal.unbiased/1"


@dataclass(frozen=True, eq=False)
class UnbiasedEstimate:
    """A private mean with its error bars; all of it public, in the value's unit.

    Source: docs/theory/unbiased.md.

    Attributes:
        estimator: The estimator that drew it.
        document: The manifest's bytes, as recorded in the ledger if there is one.
        entry: The ledger's entry; None without a ledger.
        from_ledger: Whether it had been recorded before: no value was used, nothing charged.
        confidence: Of `interval`.

    Guarantees: G-COVERAGE, G-UNBIASED.

    Example:
        >>> from shoal.unbiased import Moment, symmetric_mean
        >>> found = symmetric_mean([4.0, 6.0] * 500, moment=Moment(8, 2), epsilon=1, delta="1e-6")
        >>> found.mechanism, found.interval[0] < found.value < found.interval[1]
        ('symmetric_mean', True)
    """

    estimator: Estimator
    document: bytes
    entry: Entry | None
    from_ledger: bool
    confidence: float

    @cached_property
    def manifest(self) -> documents.Document:
        """Everything public about the release, as a JSON object."""
        return documents.parse(self.document, SCHEMA, "manifest")

    @property
    def value(self) -> float:
        """The estimate, in the value's unit."""
        return float(self.manifest["result"]["value"])

    @property
    def interval(self) -> tuple[float, float]:
        """Covers the mean of the users' distribution with `confidence`, by Chebyshev's bound."""
        half = self.estimator.half_interval(self.confidence)
        return self.value - half, self.value + half

    @property
    def coarse_failed(self) -> bool | None:
        """Whether the coarse step of `symmetric_mean` failed; None for other methods."""
        failed: bool | None = self.manifest["result"]["coarse_failed"]
        return failed

    @property
    def standard_error(self) -> float:
        """Largest standard deviation of the estimate, in the value's unit, sampling included."""
        return self.estimator.standard_error

    @property
    def bias_bound(self) -> float:
        """The largest bias of the estimate, in the value's unit."""
        return self.estimator.bias_bound

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise, in the value's unit; 0 if there is none."""
        return self.estimator.noise_scale

    @property
    def epsilon(self) -> float:
        """Privacy loss of every user, rounded upwards."""
        return round_up(self.estimator.loss.epsilon)

    @property
    def delta(self) -> float:
        """The delta of (epsilon, delta)-DP, rounded upwards."""
        return round_up(self.estimator.loss.delta)

    @property
    def n(self) -> int:
        """The number of users."""
        return self.estimator.weights.users

    @property
    def mechanism(self) -> str:
        """The method's name."""
        return self.estimator.name

    @property
    def simulated(self) -> bool:
        """Whether the randomness was repeatable: then nobody is protected."""
        return bool(self.manifest["simulation"])

    def write_manifest(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the manifest, byte for byte as recorded.

        Args:
            path: Where to.
            overwrite: Replace a file that is there.

        Raises:
            DocumentError: There is a file already, or the place cannot be written.
        """
        files.write_bytes(path, self.document, overwrite=overwrite)

    @property
    def sentence(self) -> str:
        """The estimate and its errors in one line, without where it is booked."""
        low, high = self.interval
        kind = "simulated " if self.simulated else ""
        failed = ", coarse step failed" if self.coarse_failed else ""
        losses = self.estimator.loss.show(up=True)
        return (
            f"{kind}{self.mechanism}: {self.value:.6g} in [{low:.6g}, {high:.6g}] "
            f"({self.confidence:.0%}), standard error at most {self.standard_error:.3g}, "
            f"bias at most {self.bias_bound:.3g}, {losses}{failed}"
        )

    def __str__(self) -> str:
        """One line, with where it is booked, and whether it was drawn just now."""
        return f"{self.sentence}; {told(self.entry, again=self.from_ledger)}"

    def __repr__(self) -> str:
        """The same."""
        return f"<{self}>"
