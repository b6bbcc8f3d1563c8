"""`shoal verify`: do all claims of a manifest hold?"""

from dataclasses import asdict

import typer

from shoal.cli import options as o
from shoal.cli.output import show, show_json
from shoal.progress import working


def verify(
    manifest: o.Manifest,
    record: o.KnownRecord = None,
    ledger: o.KnownLedger = None,
    replan: o.Replan = False,
    as_json: o.Json = False,
) -> None:
    """Check a manifest, and with its record or ledger every claim.

    Computes values and intervals again; the privacy loss of every user and every certificate need
    the record, which the ledger keeps. Exit status: 0 if all hold, else 1.

    Example: shoal verify manifest.json --ledger flights.ledger
    """
    import shoal

    with working("computing every claim again"):
        verdict = shoal.verify(manifest, record=record, ledger=ledger, replan=replan)
    if as_json:
        checks = [asdict(check) for check in verdict.checks]
        unverified = list(verdict.unverified)
        show_json({"holds": verdict.holds, "checks": checks, "unverified": unverified})
    else:
        show(verdict)
    if not verdict.holds:
        raise typer.Exit(1)
