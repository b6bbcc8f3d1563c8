"""`shoal report`: a page about a release, for people who read no code."""

from shoal.cli import options as o
from shoal.cli.output import show
from shoal.progress import working


def report(
    manifest: o.Manifest,
    output: o.Report,
    ledger: o.KnownLedger = None,
    title: o.Title = "",
    label: o.Label = "",
    force: o.Force = False,
) -> None:
    """Write a page for readers: results and what they mean.

    Example: shoal report manifest.json --output report.html --ledger flights.ledger
    --title "Speed of flights" --label mph
    """
    import shoal

    with working("verifying, drawing, writing"):
        shoal.report(manifest, output, ledger=ledger, title=title, label=label, overwrite=force)
    show(f"wrote {output}")
