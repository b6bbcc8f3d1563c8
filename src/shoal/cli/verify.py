"""`shoal verify`: does a manifest tell the truth?"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Json, show, show_json


def verify(
    manifest: Annotated[Path, typer.Argument(help="A manifest written by `shoal release`.")],
    ledger: Annotated[
        Path | None,
        typer.Option(help="Also check that this ledger recorded and charged it."),
    ] = None,
    replan: Annotated[
        bool, typer.Option("--replan", help="Of cells: plan again, too, and compare.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Recompute the privacy loss and every certificate from the manifest alone; say yes or no.

    Example: shoal verify manifest.json --ledger flights.ledger
    """
    import shoal

    verdict = shoal.verify(manifest, ledger=ledger, replan=replan)
    if as_json:
        show_json(
            {
                "holds": verdict.holds,
                "checks": [asdict(check) for check in verdict.checks],
                "unverified": list(verdict.unverified),
            }
        )
    else:
        show(str(verdict))
    if not verdict.holds:
        raise typer.Exit(1)
