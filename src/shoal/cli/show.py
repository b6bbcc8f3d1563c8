"""`shoal show`: what a release says, again."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from shoal.cli import options as o
from shoal.cli.output import check_places, recorded, show, show_json
from shoal.cli.release import check_shown, has_levels, in_words
from shoal.errors import InputError
from shoal.progress import working

_ASSIGNED = (
    "intervals hold for units that were assigned one by one, within clusters; if whole classes or "
    "villages were assigned, give --groups FILE --unit NAME --assigned COLUMN"
)


def show_release(
    manifest: o.OptionalManifest = None,
    ledger: o.KnownLedger = None,
    name: o.Name = "",
    entry: o.Entry = None,
    confidence: o.Confidence = 0.95,
    difference: o.TwoCells = None,
    output: o.Output = None,
    picture: o.Picture = None,
    record: o.RecordOutput = None,
    withdrawn: o.Withdrawn = False,
    assigned: o.Assigned = None,
    groups: o.Groups = None,
    unit: o.Unit = None,
    by_cluster: o.ByCluster = False,
    ols: o.Ols = None,
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Show a release again, with other intervals, effects, pictures.

    Reads the release from its manifest, or from the ledger that recorded it; charges nothing.

    Example: shoal show trial.json --groups classes.csv --unit pupil --assigned class
    """
    import shoal
    from shoal.publishing import write_all
    from shoal.release.plan import ANSWERING

    read = {"MANIFEST": manifest, "--ledger": ledger, "--groups": groups}
    check_places(read, force=force, table=output, record=record, picture=picture)
    with working("reading what was released"):
        done = _found(manifest, ledger, name, entry, withdrawn=withdrawn)
    family = done.plan_model.family
    by_level = has_levels(done.said.kind, done.published)
    check_shown(family, confidence, output, picture, by_level=by_level)
    _check_family(family, [assigned, groups, unit, by_cluster, ols])
    if difference is not None and done.said.kind != "cells":
        raise InputError(
            "--difference works with releases of means alone, of cells of public counts",
            "leave it out, and compare the intervals of both cells",
        )
    lines = [] if done.entry is None else [recorded(done)]
    document: dict[str, Any]
    if family == "trial":
        _check_groups(assigned, groups, unit, picture)
        if ols and output:
            raise InputError("--output does not work with --ols", "leave --output out")
        with working("estimating"):
            tables = _effects(done, confidence, assigned, groups, unit, ols)
        lines += map(str, tables)
        results = [each for table in tables for each in table]
        documents = [each.to_document() for each in results]
        if done.said.kind in ANSWERING:
            document = {"answers": documents}
        else:
            document = {"effects": documents}
            if by_cluster:
                lines += [str(each.clusters) for each in results]
            if not assigned:
                lines.append(_ASSIGNED)
    else:
        said, document = _numbers(done, confidence, difference)
        lines.append(said)
    writers: list[Any] = [
        (partial(done.write, confidence=confidence) if output else None, output),
        (done.write_record, record),
        (partial(shoal.picture, done, confidence=confidence), picture),
    ]
    write_all(writers, overwrite=force)
    if as_json:
        show_json(document)
    else:
        show("\n".join(lines))


def _found(
    manifest: Path | None, ledger: Path | None, name: str, number: int | None, *, withdrawn: bool
) -> Any:
    """Read a release of any family from its manifest or its ledger."""
    from shoal.privacy.ledger import Ledger, the_entry
    from shoal.verification.rederive import FAMILIES, load

    if (manifest is None) == (ledger is None):
        raise InputError(
            "exactly one of a manifest and a ledger is needed",
            "give for example manifest.json, or --ledger flights.ledger --name 2013-05",
        )
    if manifest is not None:
        return load(manifest)
    book = Ledger(str(ledger))
    fits = the_entry(book.entries(), name, number)
    known = book.find(fits.question, fits.name, withdrawn=withdrawn)
    family = None if known is None else FAMILIES.get(known.kind)
    if known is None or family is None:
        raise InputError("the entry was not recorded by a command of shoal", "choose another entry")
    inputs = {"ledger": str(book.path)}
    return family(known.document, known, from_ledger=True, inputs=inputs)


def _check_family(family: str, of_trials: list[object]) -> None:
    """Refuse options that do not work with releases of a family."""
    if any(of_trials) and family != "trial":
        raise InputError(
            "these options work only with the release of a trial",
            "leave out --assigned, --groups, --unit, --by-cluster and --ols",
        )


def _numbers(
    done: Any, confidence: float, cells: tuple[str, str] | None
) -> tuple[str, dict[str, Any]]:
    """Return what is shown of means and cells, as text and for JSON."""
    if cells is not None:
        found = done.difference(*cells, confidence)
        return str(found), {"difference": asdict(found)}
    text = in_words(done, confidence)
    if done.plan_model.family == "mean":
        ends = replace(done, confidence=confidence).interval
        return text, {"mean": done.value, "interval": ends}
    return text, {"table": done.table(confidence).to_pylist()}


def _check_groups(
    assigned: str | None, groups: Path | None, unit: str | None, picture: Path | None
) -> None:
    """Refuse options on assigned groups that do not go together."""
    needs_file = assigned not in (None, "units")
    has_file = groups is not None
    if has_file != needs_file or (unit is not None and not has_file):
        raise InputError(
            "--groups, --unit and --assigned are not given together",
            "give --groups FILE --unit NAME --assigned COLUMN; or --assigned units and no groups",
        )
    if groups is not None and picture is not None:
        raise InputError(
            "--picture does not work with effects of assigned groups",
            "leave --picture out, as its intervals would not take the groups into account",
        )


def _effects(
    done: Any, confidence: float, assigned: Any, groups: Path | None, unit: Any, ols: Any
) -> list[Any]:
    """Return one table of effects or answers of a trial, or with `ols` one for each regression."""
    from shoal.data.sources import read_columns
    from shoal.trials.columns_of_a_file import formula

    if ols:
        source = done.plan.source
        return [done.regression(formula(source, each), confidence) for each in ols]
    if groups is not None:
        table = read_columns(groups, private={}, public={"assigned": assigned, "unit": unit})
        assigned = table.column(assigned)
        unit = unit and table.column(unit)
    return [done.estimate(confidence, assigned=assigned, unit=unit)]
