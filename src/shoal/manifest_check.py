"""Whether a manifest tells the truth, alone or beside the ledger that is said to hold it."""

import os

from shoal.documents import Document
from shoal.privacy.ledger import Ledger
from shoal.verification import verify as second_opinion
from shoal.verification.verdict import Verdict


def verify(
    manifest: str | os.PathLike[str] | Document,
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    replan: bool = False,
) -> Verdict:
    """Recompute the privacy loss and every certificate of a manifest from the manifest alone.

    Args:
        manifest: A path, or the document itself: of a release of cells, a trial, or an unbiased
            mean.
        ledger: Check, too, that this ledger, or the one at this path, holds and recorded these
            very bytes, for this request and unit, at no less than what they cost.
        replan: Of cells: plan again, too, and compare the decision; by the same version alone.

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
    if ledger is not None and not isinstance(ledger, Ledger):
        ledger = Ledger(ledger)
    return second_opinion.verify(manifest, ledger=ledger, replan=replan)
