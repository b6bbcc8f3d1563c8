"""`shoal report`: a page about a release, for people who read no code."""

from shoal.cli import options as o
from shoal.cli.output import show


def report(
    manifest: o.Manifest, output: o.Report, ledger: o.KnownLedger = None, force: o.Force = False
) -> None:
    """Write a page for readers: results and what they mean.

    Example: shoal report manifest.json --output report.html --ledger flights.ledger
    """
    import shoal

    shoal.report(manifest, output, ledger=ledger, overwrite=force)
    show(f"wrote {output}")
