"""The second opinion on every kind of manifest, by its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal import documents
from shoal.release import verify as of_cells
from shoal.trials import verify as of_trials
from shoal.unbiased import verify as of_unbiased
from shoal.verdict import Verdict
from shoal.verification_ledger import ledger_checks

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from shoal.accounting.ledger import Ledger

_KINDS: dict[str, Callable[[documents.Document], Verdict]] = {
    of_cells.SCHEMA: of_cells.verify,
    of_trials.SCHEMA: of_trials.verify,
    of_unbiased.SCHEMA: of_unbiased.verify,
}


def verify(
    manifest: str | os.PathLike[str] | documents.Document,
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
) -> Verdict:
    """Recompute epsilon and every certificate of a manifest from it alone.

    Args:
        manifest: A path, or the document itself: of a release of cells, a trial, or an unbiased
            mean.
        ledger: Check, too, that this ledger holds and recorded these very bytes, for this request
            and unit, at no less than what they cost.

    Returns:
        A verdict; it is false if any claim is better than the truth.

    Raises:
        DocumentError: Not a manifest, or a part is missing or damaged.
        LedgerError: The ledger is missing or cannot be read.

    Example:
        >>> verify({"schema": "another"})
        Traceback (most recent call last):
        shoal.errors.DocumentError: manifest is not of the schema ...
    """
    schemas = tuple(_KINDS)
    if isinstance(manifest, dict):
        found = documents.check_schema(documents.plain(manifest, "manifest"), schemas, "manifest")
    else:
        found = documents.read(manifest, schemas, "manifest")
    verdict = _KINDS[found["schema"]](found)
    if ledger is None:
        return verdict
    return Verdict((*verdict.checks, *ledger_checks(found, ledger)), verdict.unverified)
