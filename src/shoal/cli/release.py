"""`shoal release`: carry a plan of any family out against a ledger."""

from functools import partial
from pathlib import Path
from typing import Any

from shoal.cli import options as o
from shoal.cli.output import check_places, delivery, recorded, show, show_json
from shoal.errors import InputError
from shoal.progress import bar, working


def release(
    data: o.Data,
    plan: o.PlanFile,
    ledger: o.Ledger,
    name: o.Name = "",
    output: o.Output = None,
    manifest: o.ManifestOutput = None,
    record: o.RecordOutput = None,
    picture: o.Picture = None,
    confidence: o.Confidence = 0.95,
    privacy_unit: o.PrivacyUnit = "",
    force: o.Force = False,
    anyway: o.Anyway = False,
    as_json: o.Json = False,
) -> None:
    """Carry out a plan: read values once, charge the ledger, deliver.

    The plan may be of cells, of a trial, or of a mean; it names the columns that are used. The same
    plan and name again deliver the recorded result, and cost nothing.

    Example: shoal release flights.parquet plan.json --ledger flights.ledger --output speeds.csv
    --manifest manifest.json
    """
    import shoal
    from shoal.publishing import delivering, write_all

    read = {"DATA": data, "PLAN": plan, "--ledger": ledger}
    check_places(read, force=force, table=output, manifest=manifest, record=record, picture=picture)
    made = _load(plan)
    by_level = has_levels(made.kind, made)
    check_shown(made.family, confidence, output, picture, by_level=by_level)
    with working("reading values, drawing noise, recording"):
        done = _carry_out(
            made, data, anyway=anyway, ledger=ledger, name=name, privacy_unit=privacy_unit
        )
    writers: list[Any] = [
        (partial(done.write, confidence=confidence) if output else None, output),
        (done.write_manifest, manifest),
        (done.write_record, record),
        (partial(shoal.picture, done, confidence=confidence), picture),
    ]
    with delivering(done.entry, ledger):
        write_all(writers, overwrite=force)
        again = done.from_ledger
        if as_json:
            show_json({**done.manifest, "delivery": delivery(done.entry, again=again)})
        else:
            show(f"{recorded(done)}\n{_text(done, confidence)}")


def has_levels(kind: str, plan_or_results: Any) -> bool:
    """Whether a release has intervals for some confidences only, from 0.8 to 0.995."""
    from shoal.release.plan import ANSWERING

    is_normal_mean = getattr(plan_or_results, "interval_by", "") == "normal"
    return is_normal_mean or kind in ("histogram", *ANSWERING)


def check_shown(
    family: str, confidence: float, output: Path | None, picture: Path | None, *, by_level: bool
) -> None:
    """Refuse, before any charge, files and a confidence that the release cannot be shown with.

    `by_level` is what `has_levels` says.
    """
    from shoal.checks import check_confidence
    from shoal.intervals import check_level

    if family == "mean" and (output or picture):
        raise InputError(
            "--output and --picture do not work with a mean, which is one number",
            "leave them out, and give --manifest",
        )
    if by_level:
        check_level(confidence)
    else:
        check_confidence(confidence)


def in_words(done: Any, confidence: float) -> str:
    """Return the text of a release of any family."""
    from dataclasses import replace

    family = done.plan_model.family
    if family == "mean":
        return str(replace(done, confidence=confidence).sentence)
    if family == "trial":
        return str(done.estimate(confidence))
    return str(done.to_text(confidence))


def _text(done: Any, confidence: float) -> str:
    """Return the text of a release.

    For a trial, two notes come first: what happens to outcomes outside the domain, and how the
    release was made or when its intervals hold.
    """
    from shoal.release.plan import ANSWERING

    plan = done.plan
    if plan.family != "trial":
        return in_words(done, confidence)
    # Tables say the reason for their choice, and histograms have none.
    note = getattr(plan, "reason", "histograms of cells, with noise")
    if plan.kind in ANSWERING:
        moved = "outcomes outside the range are moved to its ends"
        note = ""
        assignment_is_said = plan.source and plan.source.assigned
        if plan.design.group is None and not assignment_is_said:
            note = (
                "intervals hold for units that were assigned one by one; if whole classes or "
                "villages were assigned, they are far too short: use --assigned"
            )
    elif plan.domain.labels:
        moved = "texts that are not a label count as the first level"
    else:
        moved = "outcomes outside the domain are moved to its nearest level"
    return "\n".join(filter(None, [moved, note, in_words(done, confidence)]))


def _load(path: Path) -> Any:
    """Load a plan of any family."""
    import shoal
    from shoal.release.plan import Plan

    found = shoal.load(path)
    if isinstance(found, Plan):
        return found
    raise InputError(f"{str(path)!r} is not a plan", "give a file of `shoal plan --output`")


def _carry_out(plan: Any, data: Path, *, privacy_unit: str, anyway: bool, **options: Any) -> Any:
    """Release the records in a file by a plan of any family."""
    from shoal.cells.comparisons.advice import check_worth
    from shoal.publishing import no_source, records_of
    from shoal.release.columns import read_by_roles
    from shoal.trials.columns_of_a_file import read_trial

    source = plan.source
    if source is None:
        raise no_source()
    if plan.family == "presence":
        records = records_of(data, plan.request, source)
        return plan.release(records, privacy_unit=privacy_unit, **options)
    if plan.family == "cells":
        records = records_of(data, plan.request, source)
        before = None if anyway else partial(check_worth, progress=bar("simulating other plans"))
        return plan.release(records, privacy_unit=privacy_unit, before=before, **options)
    # Plans of means and trials may name the privacy unit; the option comes before that.
    privacy_unit = privacy_unit or source.privacy_unit or ""
    source = source.model_copy(update={"privacy_unit": privacy_unit or None})
    ledger = options["ledger"]
    if plan.family == "mean":
        users = {"user": source.user if source.tells_users else None}
        found = read_by_roles(data, source, "value", users, look=True, ledger=ledger)
        values = found["value"]
        return plan.release(values, found["user"], privacy_unit=source.protects, **options)
    design = plan.design
    names = [each.name for each in design.covariates]
    study, outcomes = read_trial(
        data,
        source,
        plan.domains,
        names,
        control=design.arms[0].as_py(),
        clustering_epsilon=design.clustering_epsilon,
        look=True,
        ledger=ledger,
    )
    return plan.release(outcomes, study, privacy_unit=privacy_unit, **options)
