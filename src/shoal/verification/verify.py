"""Checks whether a manifest tells the truth: alone, with its record, or with its ledger."""

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal import documents
from shoal.documents.strict_json import strict
from shoal.privacy.ledger import Ledger
from shoal.privacy.unit import DECLARED
from shoal.release.envelope import MANIFEST, RECORD
from shoal.release.release import Release, damaged
from shoal.verification import verdict
from shoal.verification.ledger_record import record_checks, recorded
from shoal.verification.recount import recount
from shoal.verification.rederive import FAMILIES, differences, replanned, unlike_again
from shoal.verification.verdict import Check, Verdict

# The errors to which parts of a damaged document lead.
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
    """Returns the verdict of `verify` on the bytes of a manifest and of its record.

    `release` is the release in the manifest, if it has been read already.
    """
    found: Any = strict(data, "manifest")
    is_record = isinstance(found, dict) and found.get("schema") == RECORD
    document = documents.expect(found, RECORD if is_record else MANIFEST, "manifest")
    try:
        # shoal writes no number that overflows here. It may write one that underflows to 0, which
        # is accepted whatever the caller has told NumPy to do with such numbers.
        with np.errstate(all="ignore", over="raise"):
            stated = release or _read(data, document)
            if is_record:
                return _verdict(data, stated, [], book, replan=replan)
            kept = record
            if kept is None and book is not None:
                kept = recorded(document["record_sha256"], book)
            if kept is None:
                return _verdict_alone(stated, document, book)
            whole = _read(kept, documents.expect(strict(kept, "record"), RECORD, "record"))
            first = [*_follows(data, document, kept, whole)]
            return _verdict(kept, whole, first, book, replan=replan)
    except _DAMAGED:
        raise damaged() from None


def _verdict_alone(
    release: Release[Any, Any], manifest: documents.Document, book: Ledger | None
) -> Verdict:
    """Returns the verdict on a manifest whose record nobody has."""
    unlike = [*unlike_again(release)]
    checks = [_check("what is shown follows", unlike, "from what was drawn")]
    if release.published.plan is not None:
        loss = f"epsilon {release.plan.epsilon:.6g}, delta {release.plan.delta:.6g}"
        plan = release.published.plan_document()
        full = manifest | {"plan": plan, "results": manifest["results"]["results"]}
        checks.append(_check("recount by other code", recount(full), loss))
    checks += _stated(manifest)
    if book is not None:
        checks += record_checks(manifest["record_sha256"], book)
    return Verdict(tuple(checks), (*_unproved(release, manifest), *_always(book)))


def _read(data: bytes, document: documents.Document) -> Release[Any, Any]:
    """Returns the release in a document."""
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
    """Returns the verdict on a record, with `first` checks that were made before."""
    document = release.record
    checks = [*first, *_checks(release, document, replan=replan)]
    if book is not None:
        checks += record_checks(hashlib.sha256(record).hexdigest(), book)
    return Verdict(tuple(checks), (*_always(book), *_unverified(document, replan=replan)))


def _follows(
    data: bytes, manifest: documents.Document, record: bytes, whole: Release[Any, Any]
) -> Iterator[Check]:
    """Yields whether a manifest is that of a record, byte for byte."""
    sha256 = hashlib.sha256(record).hexdigest()
    yield Check("digest of the record", sha256 == manifest["record_sha256"], sha256[:16])
    same = documents.canonical_bytes(whole.manifest) == data
    found = "byte for byte" if same else "it says something else than the record"
    yield Check("the manifest follows from the record", same, found)


def _checks(
    release: Release[Any, Any], record: documents.Document, *, replan: bool
) -> Iterator[Check]:
    """Yields whether everything in a record follows from its plan and what was drawn."""
    plan = release.plan
    found = [*differences(release)]
    loss = f"epsilon {plan.epsilon:.6g}, delta {plan.delta:.6g}"
    yield _check("loss, claims and values follow", found, loss)
    yield _check("recount by other code", recount(record), loss)
    yield from _stated(record)
    if replan and plan.family == "cells":
        yield _check("the decision is that of a new plan", [*replanned(plan)], "planned again")


def _stated(document: documents.Document) -> Iterator[Check]:
    """Yields whether a document says that nothing was simulated, and what it only declares."""
    simulated = ["a simulation, not private"] if document["simulation"] else []
    yield _check("noise of the operating system", simulated, "stated")
    unit = document["guarantee"]["unit"]
    if unit["records"] == DECLARED:
        found = f"each row is another {unit['name']}: not checked"
        yield Check("what one unit is", holds=True, found=found, word=DECLARED)


def _check(claim: str, found: list[str], right: str) -> Check:
    """Returns a check that holds if no fault was found; it shows the first fault, or `right`."""
    if not found:
        return Check(claim, holds=True, found=right)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Check(claim, holds=False, found=f"{found[0]}{more}")


def _always(book: Ledger | None) -> tuple[str, ...]:
    """Returns what no manifest can prove, with or without the ledger."""
    return verdict.ALWAYS if book is not None else (verdict.WITHDRAWN, *verdict.ALWAYS)


def _unproved(release: Release[Any, Any], manifest: documents.Document) -> Iterator[str]:
    """Yields what a manifest without its record cannot prove, besides what no manifest can."""
    if release.published.plan is None:
        epsilon = manifest["guarantee"]["epsilon_at_most"]
        stated = release.published.stated
        yield verdict.ASK.format(epsilon, stated, manifest["record_sha256"])


def _unverified(manifest: Any, *, replan: bool) -> Iterator[str]:
    """Yields what a record of this kind cannot prove, besides what no manifest can."""
    if manifest["kind"] in ("cells", "distributions") and not replan:
        yield verdict.DECISION
    if manifest["kind"] == "mean":
        yield from verdict.MEAN
        if manifest["plan"]["request"]["method"] == "symmetric_mean":
            yield verdict.SYMMETRY
        if manifest["results"]["squares"] is not None:
            yield verdict.NEARLY_NORMAL
