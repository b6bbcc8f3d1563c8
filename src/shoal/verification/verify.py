"""Whether a manifest tells the truth, alone, with its record, or beside the ledger that has it."""

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal import documents
from shoal.documents.strict_json import strict
from shoal.privacy.ledger import Ledger
from shoal.release.envelope import MANIFEST, RECORD
from shoal.release.release import Release, damaged
from shoal.verification import verdict
from shoal.verification.ledger_record import record_checks, recorded
from shoal.verification.recount import recount
from shoal.verification.rederive import FAMILIES, differences, replanned, unlike_again
from shoal.verification.verdict import Check, Verdict

# Of a manifest that holds all of the plan: what a record has, too.
_ALL = ("plan", "results")
# What the parts of a damaged document lead to.
_DAMAGED = LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError


def verify(
    manifest: str | os.PathLike[str] | documents.Document,
    *,
    record: str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    replan: bool = False,
) -> Verdict:
    """Recompute what a manifest shows, and with its record the privacy loss and every certificate.

    Args:
        manifest: A path, or the document itself: of a release of cells, a trial, or an unbiased
            mean. A record is checked in the same way, alone.
        record: What `write_record` wrote: also check that the manifest follows from it, byte for
            byte, and compute the loss of every user and all errors again.
        ledger: This ledger, or the one at this path, holds the record: check that, too, and that it
            was recorded for this request and unit, at no less than what it costs.
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
    kept = None if record is None else documents.read_bytes(record, "record")
    return verdict_on(data, book, record=kept, replan=replan)


def verdict_on(
    data: bytes,
    book: Ledger | None,
    *,
    record: bytes | None = None,
    replan: bool = False,
    release: Release[Any, Any] | None = None,
) -> Verdict:
    """See `verify`; of the bytes of both documents, and of the release in the first if read."""
    found: Any = strict(data, "manifest")
    is_record = isinstance(found, dict) and found.get("schema") == RECORD
    document = documents.expect(found, RECORD if is_record else MANIFEST, "manifest")
    try:
        # A number that overflows is no number of shoal's; one that is lost near 0 is, whatever the
        # caller has told NumPy to do with it.
        with np.errstate(all="ignore", over="raise"):
            own = release or _read(data, document)
            if is_record:
                return _verdict(data, own, [], book, replan=replan)
            sha256 = document["record_sha256"]
            kept = record
            if kept is None and book is not None:
                kept = recorded(sha256, book)
            if kept is None:
                shown = [
                    _check("what is shown follows", [*unlike_again(own)], "from what was drawn")
                ]
                if own.published.plan is not None:
                    loss = f"epsilon {own.plan.epsilon:.6g}, delta {own.plan.delta:.6g}"
                    again = recount(document | {name: document["results"][name] for name in _ALL})
                    shown.append(_check("recount by other code", again, loss))
                ledger = [] if book is None else record_checks(sha256, book)
                unproved = (*_unproved(own, document), *_always(book))
                return Verdict((*shown, *_real(document), *ledger), unproved)
            whole = _read(kept, documents.expect(strict(kept, "record"), RECORD, "record"))
            first = [*_follows(data, document, kept, whole)]
            return _verdict(kept, whole, first, book, replan=replan)
    except _DAMAGED:
        raise damaged() from None


def _read(data: bytes, document: documents.Document) -> Release[Any, Any]:
    """The release in a document."""
    family = FAMILIES[document["kind"]]
    return family(data, loaded=True, known=family.read(data, "manifest", document))


def _verdict(
    record: bytes,
    release: Release[Any, Any],
    first: list[Check],
    book: Ledger | None,
    *,
    replan: bool,
) -> Verdict:
    """All that can be said of a record."""
    document = release.record
    checks = [*first, *_checks(release, document, replan=replan)]
    if book is not None:
        checks += record_checks(hashlib.sha256(record).hexdigest(), book)
    return Verdict(tuple(checks), (*_always(book), *_unverified(document, replan=replan)))


def _follows(
    data: bytes, manifest: documents.Document, record: bytes, whole: Release[Any, Any]
) -> Iterator[Check]:
    """Whether a manifest is that of a record, byte for byte."""
    sha256 = hashlib.sha256(record).hexdigest()
    yield Check("digest of the record", sha256 == manifest["record_sha256"], sha256[:16])
    same = documents.canonical_bytes(whole.manifest) == data
    found = "byte for byte" if same else "it says something else than the record"
    yield Check("the manifest follows from the record", same, found)


def _checks(
    release: Release[Any, Any], record: documents.Document, *, replan: bool
) -> Iterator[Check]:
    """Whether everything in a record follows from its plan and what was drawn."""
    plan = release.plan
    found = [*differences(release)]
    loss = f"epsilon {plan.epsilon:.6g}, delta {plan.delta:.6g}"
    yield _check("loss, claims and values follow", found, loss)
    yield _check("recount by other code", recount(record), loss)
    yield from _real(record)
    if replan and record["kind"] == "cells":
        yield _check("the decision is that of a new plan", [*replanned(plan)], plan.method)


def _real(document: documents.Document) -> Iterator[Check]:
    """Whether a document says that nothing was simulated."""
    simulated = ["a simulation, not private"] if document["simulation"] else []
    yield _check("noise of the operating system", simulated, "stated")


def _check(claim: str, found: list[str], right: str) -> Check:
    """A check that holds if nothing was found, with the first thing that was."""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Check(claim, holds=not found, found=f"{found[0]}{more}" if found else right)


def _always(book: Ledger | None) -> tuple[str, ...]:
    """What no manifest can prove, with or without the ledger."""
    return verdict.ALWAYS if book is not None else (verdict.WITHDRAWN, *verdict.ALWAYS)


def _unproved(release: Release[Any, Any], manifest: documents.Document) -> Iterator[str]:
    """What a manifest alone cannot prove, besides what none can."""
    if release.published.plan is None:
        epsilon = manifest["guarantee"]["epsilon_at_most"]
        stated = release.published.stated
        yield verdict.ASK.format(epsilon, stated, manifest["record_sha256"])


def _unverified(manifest: Any, *, replan: bool) -> Iterator[str]:
    """What a record of its kind cannot prove, besides what none can."""
    if manifest["kind"] == "cells" and not replan:
        yield verdict.DECISION
    if manifest["kind"] == "mean":
        yield from verdict.MEAN
        if manifest["plan"]["request"]["method"] == "symmetric_mean":
            yield verdict.SYMMETRY
        if manifest["results"]["squares"] is not None:
            yield verdict.NEARLY_NORMAL
