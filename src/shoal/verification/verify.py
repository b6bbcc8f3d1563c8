"""The second opinion on a manifest of any kind."""

import os
from typing import Any

from shoal import documents
from shoal.documents.strict_json import strict
from shoal.release.envelope import MANIFEST
from shoal.verification import rederive, rederive_means, rederive_trials
from shoal.verification.ledger_record import Books, record_checks
from shoal.verification.verdict import Verdict


def verify(
    manifest: str | os.PathLike[str] | documents.Document,
    *,
    ledger: Books | None = None,
    replan: bool = False,
) -> Verdict:
    """Recompute epsilon and every certificate of a manifest from it alone.

    Args:
        manifest: A path, or the document itself: of a release of cells, a trial, questions,
            or an unbiased mean.
        ledger: Check, too, that this ledger holds and recorded these very bytes, for this request
            and unit, at no less than what they cost.
        replan: Of cells: plan again, too, and compare the decision; of the same version alone.

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
    if isinstance(manifest, dict):
        document: Any = documents.plain(manifest, "manifest")
        data = documents.canonical_bytes(document)
    else:
        data = documents.read_bytes(manifest, "manifest")
    found: Any = strict(data, "manifest")
    kind = documents.expect(found, MANIFEST, "manifest").get("kind")
    if kind == "cells":
        verdict = rederive.verify(found, replan=replan)
    else:
        verdict = (rederive_means if kind == "mean" else rederive_trials).verify(found)
    if ledger is None:
        return verdict
    return Verdict((*verdict.checks, *record_checks(found, ledger)), verdict.unverified)
