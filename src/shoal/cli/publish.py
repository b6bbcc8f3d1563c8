"""`shoal publish`: what was released last time, of new records."""

import typer

from shoal.cli import options as o
from shoal.cli.output import delivery, listed, recorded, show, show_json
from shoal.progress import bar, working


def publish(
    data: o.Data,
    like: o.Like,
    ledger: o.Ledger,
    name: o.Name,
    output: o.Stem = o.HERE,
    privacy_unit: o.PrivacyUnit = "",
    periods: o.Periods = None,
    force: o.Force = False,
    anyway: o.Anyway = False,
    as_json: o.Json = False,
) -> None:
    """Repeat a release with new records, and write all its files.

    Makes a plan from the earlier request and the new counts, charges the ledger, writes all files
    into one folder, and verifies the manifest. Names hours and days without a record. With --json
    it prints one short line for a scheduler.

    Example: shoal publish 2025-02.csv --like 2025-01-manifest.json --ledger rides.ledger
    --name 2025-02
    """
    from shoal import publishing

    with working("counting, planning, releasing, verifying"):
        done = publishing.publish(
            data,
            like,
            ledger=ledger,
            name=name,
            output=output,
            privacy_unit=privacy_unit,
            periods=listed(periods),
            overwrite=force,
            anyway=anyway,
            progress=bar("simulating other plans"),
        )
    entry = done.release.entry
    again = done.release.from_ledger
    verdict = done.verdict
    with publishing.delivering(entry, ledger):
        if as_json:
            manifest = done.release.manifest
            document = {
                "name": manifest["name"],
                "guarantee": manifest["guarantee"],
                "record_sha256": manifest["record_sha256"],
                "delivery": entry and delivery(entry, again=again),
                "gaps": [*done.gaps],
                "new_cells": done.new_cells,
                "gone_cells": done.gone_cells,
                "left": done.left,
                "files": {kind: str(place) for kind, place in done.files.items()},
                "holds": verdict.holds,
            }
            show_json(document, indent=None)
        else:
            lines = [recorded(done.release)] if entry else []
            lines += [f"planned with the request of {like}; {done.changes}", *done.gaps, done.left]
            lines.append(done.release.to_text())
            lines += [f"{kind}: {place}" for kind, place in done.files.items()]
            # The first line of a verdict says whether all claims hold.
            lines.append(str(verdict).splitlines()[0])
            show("\n".join(lines))
    if not verdict.holds:
        raise typer.Exit(1)
