"""`shoal mean`: means of unbounded values, unbiased or with a bias you choose."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import options as o
from shoal.cli.output import check_places, finish, show, show_json
from shoal.errors import InputError
from shoal.progress import working

if TYPE_CHECKING:
    from shoal.release.plan import Source
    from shoal.theory.clipping import Moments


def plan(
    size: o.Size,
    epsilon: o.Epsilon,
    data: o.PublicData = None,
    user: o.User = "",
    users: o.Users = None,
    value: o.Value = "",
    missing: o.Missing = "refuse",
    delta: o.Delta = "0",
    order: o.Order = None,
    interval: o.Interval = None,
    bias: o.Bias = None,
    releases: o.Releases = 1,
    weights: o.Weights = "equal",
    cap: o.Cap = None,
    interval_by: o.IntervalBy = None,
    method: o.Method = None,
    output: o.Output = None,
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Plan a mean: compare the certified errors of both estimators.

    Shows and saves the recommended plan, or that of --method clipped_mean or symmetric_mean. To
    save a plan give --value. Without --user each row is a user.

    Example: shoal mean plan visits.csv --user person --value minutes --epsilon 1 --delta 1e-6
    --order 4 --size 15 --interval 0 100 --output plan.json
    """
    from shoal import unbiased
    from shoal.release.plan import Source

    check_places({"DATA": data}, force=force, output=output)
    if output is not None and not value:
        raise InputError("--output needs --value", "give for example --value minutes")
    source = Source.of(value=value, user=user or None, missing=missing)
    moments = _moments(order, size)
    with working("counting records and planning"):
        found = unbiased.recommend(
            _counts(data, users, source),
            epsilon=epsilon,
            delta=delta,
            moment=moments,
            interval=interval,
            bias=bias,
            releases=releases,
            weights=weights,
            cap=cap,
            interval_by=interval_by,
        )
    # There may be no estimator, or one without a plan and with a reason for that.
    best = found.recommended if method is None else found[method]
    made = best and best.plan
    text = str(found)
    if method or output:
        if made is None:
            why = f"{best.method} {best.reason}" if best else "no estimator fits this request"
            raise InputError(
                why, "give what it needs, such as --bias and --interval, or --delta above 0"
            )
        text += f"\n\n{made}"
    finish(
        made and made.with_source(source),
        text,
        found.to_document,
        output=output,
        force=force,
        as_json=as_json,
    )


def bound(
    users: o.Users,
    size: o.Size,
    epsilon: o.Epsilon,
    delta: o.Delta = "0",
    order: o.Order = None,
    bias: o.Bias = 0.0,
    interval: o.Interval = None,
    as_json: o.Json = False,
) -> None:
    """Show the least error that a private estimator of a mean can have.

    `shoal mean plan` compares the certified errors of the estimators with it.

    Example: shoal mean bound --users 10000 --epsilon 0.1 --bias 0.01 --size 1
    """
    from shoal.means.recommend import worst_moment
    from shoal.theory.trilemma import trilemma

    if interval is not None and not interval[0] < interval[1]:
        raise InputError("the interval is empty", "give the lower end first, for example 0 10")
    width = None if interval is None else interval[1] - interval[0]
    moment = _moments(order, size)
    found = trilemma(users or 0, epsilon, delta, bias or 0.0, worst_moment(moment), width=width)
    if not as_json:
        show(found)
        return
    terms = [
        {"rmse": _finite(each.rmse), "source": each.source, "holds": each.holds}
        for each in found.terms
    ]
    show_json({"rmse": _finite(found.rmse), "terms": terms})


def _counts(data: Path | None, users: int | None, source: "Source") -> Any:
    """Return the public number of records of each user, or only the number of users."""
    import numpy as np

    from shoal.data import keys
    from shoal.release.columns import read_by_roles

    both_or_neither = (data is None) == (users is None)
    number_and_column = users is not None and source.user
    no_column = data is not None and not (source.user or source.value)
    if both_or_neither or number_and_column or no_column:
        raise InputError(
            "it is not clear how many users there are",
            "give DATA with --user, or with --value if each row is a user; or, without DATA, for "
            "example --users 2000",
        )
    if data is None:
        return users
    # Without users' names any column says how many rows there are.
    user = source.user if source.tells_users else None
    found = read_by_roles(data, source, "value", {"user": user}, look=user is None)
    if user is None:
        return len(found["value"])
    return np.bincount(keys.encode(found["user"], "user"))


def _finite(number: float) -> float | None:
    """Return a bound for JSON, which knows no infinity: an infinite one becomes null."""
    return number if abs(number) < float("inf") else None


def _moments(orders: list[float] | None, sizes: list[float]) -> "Moments":
    """Return the known moments, from orders (2 by default) and sizes that are given in pairs."""
    from shoal.theory.clipping import Moment, moments_of

    given = orders or [2.0]
    if len(given) != len(sizes):
        raise InputError(
            f"there are {len(given)} orders and {len(sizes)} sizes of moments",
            "give a size for each order, for example --order 4 --size 1.5",
        )
    pairs = zip(given, sizes, strict=True)
    return moments_of(tuple(Moment(order, size) for order, size in pairs))
