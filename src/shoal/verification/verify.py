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
    """See `shoal.verify`.

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
