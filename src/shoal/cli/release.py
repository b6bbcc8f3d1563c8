"""`shoal release`: carry a plan out against a ledger."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import (
    MOST_SHOWN,
    Book,
    Confidence,
    Data,
    Force,
    Json,
    Manifest,
    Name,
    PrivacyUnitName,
    show_release,
    working,
)
from shoal.cli.outputs import check_places, delivering


def release(
    data: Data,
    plan: Annotated[Path, typer.Argument(help="A plan saved by `shoal plan --output`.")],
    ledger: Book,
    name: Name = "",
    privacy_unit: PrivacyUnitName = "",
    output: Annotated[
        Path | None, typer.Option(help="Write the table here (.csv, .parquet or .json).")
    ] = None,
    manifest: Manifest = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw values and intervals (png, svg or pdf).")
    ] = None,
    confidence: Confidence = 0.95,
    rows: Annotated[
        int, typer.Option(help="Most rows of the table to print.", min=1, max=MOST_SHOWN)
    ] = 12,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Read the values once, add exact noise, record result and charge together, then deliver.

    Example: shoal release flights.parquet plan.json --ledger flights.ledger --output speeds.csv
    --manifest manifest.json
    """
    import shoal
    from shoal.checks import check_confidence
    from shoal.errors import DocumentError

    check_confidence(confidence)
    check_places(
        {"DATA": data, "PLAN": plan, "--ledger": ledger},
        force=force,
        tables={"--output": output},
        documents={"--manifest": manifest},
        pictures={"--picture": picture},
    )
    loaded = shoal.Plan.load(plan)
    source = dict(loaded.source or {})
    if set(source) != {"user", "value", "cell", "missing"}:
        raise DocumentError(
            "a plan that does not say which columns it is about",
            "a plan saved by `shoal plan`",
            "make the plan on the command line, or use plan.release(records) in Python",
        )
    source["by"] = source.pop("cell")
    records = shoal.Records(data, bounds=loaded.bounds, tick_bits=loaded.lattice.bits, **source)
    with working("reading values, drawing noise, recording"):
        done = loaded.release(records, ledger=ledger, name=name, privacy_unit=privacy_unit)
    table = partial(done.write, confidence=confidence)
    draw = partial(shoal.picture, done, confidence=confidence)
    files = (table, output), (done.write_manifest, manifest), (draw, picture)
    with delivering(done.entry, ledger, *files, force=force):
        show_release(done, ledger, lambda: done.to_text(confidence), as_json=as_json)
