"""Whether a manifest tells the truth, alone or beside the ledger that is said to hold it."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal import documents
from shoal.documents.strict_json import strict
from shoal.privacy.ledger import Ledger
from shoal.release.envelope import MANIFEST
from shoal.release.release import Release, damaged
from shoal.verification import verdict
from shoal.verification.ledger_record import record_checks
from shoal.verification.recount import recount
from shoal.verification.rederive import FAMILIES, differences, replanned
from shoal.verification.verdict import Check, Verdict

# What the parts of a damaged manifest lead to.
_DAMAGED = LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError


def verify(
    manifest: str | os.PathLike[str] | documents.Document,
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
    book = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger)
    if isinstance(manifest, dict):
        plain: Any = documents.plain(manifest, "manifest")
        data = documents.canonical_bytes(plain)
    else:
        data = documents.read_bytes(manifest, "manifest")
    return verdict_on(data, book, replan=replan)


def verdict_on(
    data: bytes,
    book: Ledger | None,
    *,
    replan: bool = False,
    release: Release[Any, Any] | None = None,
) -> Verdict:
    """See `verify`; of the bytes of a manifest, and of the release in it if that was read."""
    document = documents.expect(strict(data, "manifest"), MANIFEST, "manifest")
    try:
        # A number that overflows is no number of shoal's; one that is lost near 0 is, whatever the
        # caller has told NumPy to do with it.
        with np.errstate(all="ignore", over="raise"):
            family = FAMILIES[document["kind"]]
            if release is None:
                known = family.read(data, "manifest", document)
                release = family(data, loaded=True, known_manifest=known)
            checks = [*_checks(release, document, replan=replan)]
    except _DAMAGED:
        raise damaged() from None
    if book is not None:
        checks += record_checks(document, book)
    return Verdict(tuple(checks), (*verdict.ALWAYS, *_unverified(document, replan=replan)))


def _checks(
    release: Release[Any, Any], manifest: documents.Document, *, replan: bool
) -> Iterator[Check]:
    plan = release.plan
    found = [*differences(release)]
    loss = f"epsilon {plan.epsilon:.6g}, delta {plan.delta:.6g}"
    yield _check("loss, claims and values follow", found, loss)
    yield _check("recount by other code", recount(manifest), loss)
    simulated = ["a simulation, not private"] if manifest["simulation"] else []
    yield _check("noise of the operating system", simulated, "stated")
    if replan and manifest["kind"] == "cells":
        yield _check("the decision is that of a new plan", [*replanned(plan)], plan.method)


def _check(claim: str, found: list[str], right: str) -> Check:
    """A check that holds if nothing was found, with the first thing that was."""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Check(claim, holds=not found, found=f"{found[0]}{more}" if found else right)


def _unverified(manifest: Any, *, replan: bool) -> Iterator[str]:
    """What a manifest of its kind cannot prove, besides what none can."""
    if manifest["kind"] == "cells" and not replan:
        yield verdict.DECISION
    if manifest["kind"] == "mean":
        yield from verdict.MEAN
        if manifest["plan"]["request"]["method"] == "symmetric_mean":
            yield verdict.SYMMETRY
        if manifest["results"]["squares"] is not None:
            yield verdict.NEARLY_NORMAL
