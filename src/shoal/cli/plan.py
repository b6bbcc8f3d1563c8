"""`shoal plan`: see the error of every cell before anything private is read."""

from pathlib import Path
from typing import Any

from shoal.cli import options as o
from shoal.cli.output import check_places, finish, listed, nothing_left, settings_of, taken
from shoal.errors import InputError
from shoal.progress import bar, working

# The options of `shoal.plan` that a request of public counts does not hold.
_NOT_OF_REQUESTS = ("keys", "users", "periods", "records_per_user", "like")


def plan(
    data: o.Data,
    user: o.User,
    value: o.OptionalValue = None,
    bounds: o.OptionalBounds = None,
    by: o.By = None,
    keys: o.Keys = None,
    keys_file: o.KeysFile = None,
    users: o.AboutUsers = None,
    counts: o.Counts = "private",
    epsilon: o.Epsilon = "",
    statistic: o.Statistic = None,
    records_per_user: o.RecordsPerUser = None,
    objective: o.Objective = None,
    max_error: o.MaxError = None,
    output: o.Output = None,
    delta: o.Delta = "0",
    method: o.Method = None,
    missing: o.Missing = "refuse",
    min_users: o.MinUsers = None,
    setting: o.Setting = None,
    period: o.Period = None,
    periods: o.Periods = None,
    times: o.Times = None,
    like: o.Guide = None,
    advice: o.Advice = False,
    picture: o.Picture = None,
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Plan a release: see its errors before spending.

    Counts are private unless declared public: then nothing of the file is read, and the cells are a
    public list.

    Example: shoal plan visits.csv --user card --value minutes --bounds 0 240 --by branch
    --keys branch=North,South --users 5000 --epsilon 1 --output plan.json

    With public counts: shoal plan flights.parquet --user tailnum --value speed --bounds 0 700
    --by dest --counts public --missing public --epsilon 1 --output plan.json

    Settings of private counts: pieces=8 or 16 (of the private range).

    Settings of public counts: range=tight or loose, error=5 (the largest worst-case error, instead
    of epsilon), uninformative=drop, keep or refuse, min_records=10, tick_bits=20 (values are
    rounded to width/2^20), and settings of a method, such as cap=minimax or targets=balanced.

    Methods of public counts: user_clipped, balanced, equalised, uniform, optimal, clip_user; for
    means adaptive, array_averaging, opt_array_averaging, worst_case_optimal, levy, quantile, akmv,
    baseline.
    """
    import shoal

    settings = settings_of(setting)
    lattice = taken(settings, "tick_bits")
    given: dict[str, Any] = {
        "epsilon": epsilon or None,
        "statistics": statistic,
        "keys": _keys(keys, keys_file),
        "users": users,
        "records_per_user": records_per_user,
        "periods": listed(periods),
        "like": like,
        "delta": None if delta == "0" else delta,
        "max_error": max_error,
        "objective": objective,
        "method": method,
        "min_users": min_users,
    }
    asked = {name: each for name, each in given.items() if each is not None}
    is_public = counts == "public"
    if counts == "private":
        asked |= taken(settings, "pieces")
        nothing_left(settings, "pieces", "tick_bits")
    else:
        asked |= taken(settings, "range", "error", "uninformative", "min_records")
        # The settings that are left are those of the method.
        asked["settings"] = settings
        _check_request(asked, bounds, lattice)
    check_places({"DATA": data}, force=force, output=output, picture=picture)
    records = shoal.Records(
        data,
        user=user,
        value=value,
        bounds=bounds,
        by=by,
        missing=missing,
        counts=counts,
        period=period,
        times=times,
        **lattice,
    )
    with working("counting records and planning" if is_public else "planning"):
        made: Any = shoal.plan(records, **asked)
    text = made
    more: dict[str, Any] = {}
    if is_public:
        # In JSON the counts are shown by their digest, not row by row.
        more["counts"] = {"fingerprint": made.counts.fingerprint}
        more["labels"] = made.counts.labels
    if advice:
        # Advice on private counts needs no simulation.
        found = made.advise(progress=bar("simulating")) if is_public else made.advise()
        text = f"{made}\n\n{found}"
        if is_public:
            more["advice"] = found.table().to_pylist()
    finish(
        made,
        text,
        lambda: made.to_document() | more,
        output=output,
        picture=picture,
        force=force,
        as_json=as_json,
    )


def _keys(texts: list[str] | None, file: Path | None) -> Any:
    """Return the cells of private counts: a file, or keys of each rule; None without either."""
    if file is not None:
        if texts:
            raise InputError("--keys and --keys-file are given", "give one of them")
        return file
    found: dict[str, Any] = {}
    for text in texts or ():
        rule, equals, keys = text.rpartition("=")
        if not (rule and equals and keys) or rule in found:
            raise InputError(
                f"--keys {text!r} is given twice, or lacks a rule or keys",
                "give the keys of each rule once, like branch=North,South",
            )
        found[rule] = listed(keys)
    return found or None


def _check_request(asked: dict[str, Any], bounds: Any, lattice: dict[str, Any]) -> None:
    """Refuse what cannot be asked of public counts before a large file is read for nothing."""
    from shoal.planning import family_of

    if bounds is None:
        # Records without bounds are refused by `Records`, before anything is read.
        return
    given = {name: each for name, each in asked.items() if each not in (None, {}, [])}
    request = {name: each for name, each in given.items() if name not in _NOT_OF_REQUESTS}
    family_of(given, private=False).Request.of(bounds=bounds, **lattice, **request)
