"""`shoal plan`: see the error of every cell before any value is read."""

from typing import Any

from shoal.cli import options as o
from shoal.cli.output import check_places, finish, settings_of, taken
from shoal.progress import bar, working


def plan(
    data: o.Data,
    user: o.User,
    value: o.Value,
    bounds: o.Bounds,
    by: o.By = None,
    counts: o.Counts = "private",
    epsilon: o.Epsilon = "",
    objective: o.Objective = None,
    max_error: o.MaxError = None,
    output: o.Output = None,
    statistic: o.Statistic = None,
    delta: o.Delta = "0",
    method: o.Method = None,
    missing: o.Missing = "refuse",
    min_users: o.MinUsers = None,
    setting: o.Setting = None,
    period: o.Period = None,
    advice: o.Advice = False,
    picture: o.Picture = None,
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Plan a release from public counts: see the error of every cell.

    Example: shoal plan flights.parquet --user tailnum --value speed --bounds 0 700 --by dest
    --counts public --missing public --epsilon 1 --output plan.json

    Settings: range=tight or loose, error=5 (the largest worst-case error, instead of epsilon),
    uninformative=drop, keep or refuse, min_records=10, tick_bits=20 (values are rounded to
    width/2^20), and settings of a method, such as cap=minimax or targets=balanced.

    Methods: user_clipped, balanced, equalised, uniform, optimal, clip_user; for means adaptive,
    array_averaging, opt_array_averaging, worst_case_optimal, levy, quantile, akmv, baseline.
    """
    import shoal
    from shoal.cells import plan as cells
    from shoal.cells.facts.request import Request

    settings = settings_of(setting)
    lattice = taken(settings, "tick_bits")
    asked: dict[str, Any] = {
        "epsilon": epsilon or None,
        "statistics": statistic or ["mean"],
        "delta": delta,
        "max_error": max_error,
        "objective": objective,
        "method": method,
        **taken(settings, "range", "error", "uninformative", "min_records"),
        "settings": settings,
    }
    asked |= {} if min_users is None else {"min_users": min_users}
    # The request is checked before a large file is read for nothing.
    Request.of(bounds=bounds, **lattice, **asked)
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
        **lattice,
    )
    with working("counting records and planning"):
        made = cells.plan(records, **asked)
    found = made.advise(progress=bar("simulating")) if advice else None
    text = made if found is None else f"{made}\n\n{found}"
    more: dict[str, Any] = {
        "counts": {"fingerprint": made.counts.fingerprint},
        "labels": made.counts.labels,
    }
    more |= {} if found is None else {"advice": found.table().to_pylist()}
    finish(
        made,
        text,
        lambda: made.to_document() | more,
        output=output,
        picture=picture,
        force=force,
        as_json=as_json,
    )
