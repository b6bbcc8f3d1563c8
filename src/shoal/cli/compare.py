"""`shoal compare`: the error of every method before any value is read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.cli import options as o
from shoal.cli.output import check_places, finish, nothing_left, settings_of, taken
from shoal.errors import InputError
from shoal.progress import bar, working

# The entries of `Assumed` by the names of their settings.
_ASSUMED = {"deviation": "deviation", "between": "between", "apart": "cells"}


def compare(
    data: o.Data,
    bounds: o.Bounds,
    user: o.User = "",
    value: o.Value = "",
    by: o.By = None,
    counts: o.Counts = "private",
    epsilon: o.Epsilons = None,
    method: o.Methods = None,
    statistic: o.Statistic = None,
    delta: o.Delta = "0",
    missing: o.Missing = "refuse",
    min_users: o.MinUsers = None,
    setting: o.Setting = None,
    picture: o.Picture = None,
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Compare the errors of all methods for these counts, at no cost.

    DATA holds records, which are counted, or counts saved as JSON; no value is used. With one
    epsilon methods are ranked by their typical errors for normal values around 0.4 of the width,
    an assumption that is never fitted to the data. With several, worst-case errors are compared.

    Example: shoal compare flights.parquet --user tailnum --value speed --bounds 0 700 --by origin
    --counts public --missing public --epsilon 1

    Settings with one epsilon: deviation=90 and apart=60 (assumed standard deviations of values in a
    cell and of the cells' means, in the value's unit), between=0.5 (assumed part of the variance
    that lies between users), repetitions=20 (data sets to draw). With several: min_records=10.
    """
    import shoal
    from shoal.cells.comparisons.assumptions import usual

    check_places({"DATA": data}, force=force, picture=picture)
    settings = settings_of(setting)
    known = _counts(data, user, value, bounds, by, missing, counts)
    losses = epsilon or ["1"]
    found: Any
    document = None
    if len(losses) == 1:
        if statistic or delta != "0" or min_users is not None:
            raise InputError(
                "--statistic, --delta and --min-users work only with several values of epsilon",
                "leave them out, or give several, for example --epsilon 1 --epsilon 2",
            )
        given = {_ASSUMED[each]: number for each, number in taken(settings, *_ASSUMED).items()}
        assumed = replace(usual(shoal.Bounds.of(bounds)), **given)
        drawn = taken(settings, "repetitions") | ({"methods": method} if method else {})
        nothing_left(settings, *_ASSUMED, "repetitions")
        with working("comparing"):
            found = shoal.compare(known, bounds=bounds, epsilon=losses[0], assumed=assumed, **drawn)
        rows = {"assumed": str(found.assumed), "methods": found.table().to_pylist()}
        document = rows.copy
    else:
        rules = taken(settings, "min_records")
        rules |= {} if min_users is None else {"min_users": min_users}
        nothing_left(settings, "min_records")
        base = shoal.plan(
            known,
            bounds=bounds,
            epsilon=losses[0],
            delta=delta,
            statistics=statistic or ["mean"],
            uninformative="keep",
            **rules,
        )
        found = base.frontier(method, losses, progress=bar("planning"))
    finish(found, None, document, picture=picture, force=force, as_json=as_json)


def _counts(
    data: Path,
    user: str,
    value: str,
    bounds: Any,
    by: list[str] | None,
    missing: str,
    counts: str,
) -> Any:
    """Return public counts: those saved in a JSON file, or of the records in a file."""
    import shoal

    if data.suffix == ".json":
        return shoal.Counts.load(data)
    if not (user and value and by):
        raise InputError(
            "--user, --value or --by is missing",
            "name the columns with all three options, or give counts that were saved as .json",
        )
    records = shoal.Records(
        data, user=user, value=value, bounds=bounds, by=by, missing=missing, counts=counts
    )
    with working("counting records"):
        return records.counts()
