"""`shoal unbiased`: means of values without bounds, unbiased or with a bias you choose."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import (
    FILES,
    Book,
    Confidence,
    Data,
    Force,
    Json,
    Manifest,
    Name,
    PrivacyUnitName,
    show,
    show_json,
    show_release,
    working,
)
from shoal.cli.outputs import check_places, delivering
from shoal.cli.unbiased_data import counted, numbers, read, user_values

if TYPE_CHECKING:
    from shoal.means.recommend import Recommendation
    from shoal.theory.clipping import Moments
    from shoal.unbiased import UnbiasedPlan

app = typer.Typer(
    help="Means of values without bounds: compare estimators, plan, release, lower bounds.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Method(StrEnum):
    """Names of the estimators."""

    CLIPPED_MEAN = "clipped_mean"
    SYMMETRIC_MEAN = "symmetric_mean"


class Weighing(StrEnum):
    """Ways to weigh users."""

    EQUAL = "equal"
    COUNTS = "counts"


class By(StrEnum):
    """Ways to make intervals."""

    NORMAL = "normal"
    CERTIFIED = "certified"


Epsilon = Annotated[str, typer.Option(help="Privacy loss of every user, of one release.")]
Delta = Annotated[str, typer.Option(help="Of (epsilon, delta)-DP; without it nothing is unbiased.")]
Order = Annotated[
    list[float] | None, typer.Option(help="Of a central moment, 2 to 1000; repeat. [default: 2]")
]
Size = Annotated[
    list[float],
    typer.Option(help="E|x - mean|^order <= size^order, one for each order; repeat."),
]
Interval = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LO HI", help="Public interval that holds the mean: two numbers."),
]
Bias = Annotated[float | None, typer.Option(help="Most bias that is accepted; any if not given.")]
Releases = Annotated[
    int, typer.Option(help="So many releases, on other users each, will be averaged.", min=1)
]
Weights = Annotated[Weighing, typer.Option(help="Of users: equal, or by their records.")]
Cap = Annotated[int | None, typer.Option(help="Largest weight, with --weights counts.")]
IntervalBy = Annotated[
    By | None,
    typer.Option(
        help="normal: squares beside the sum; certified: by Chebyshev, 2.2 to 2.5 times as wide. "
        "[default: normal where it can be had]"
    ),
]
Missing = Annotated[
    str, typer.Option(help="Rows without user or value: refuse, or public (drop them).")
]
User = Annotated[
    str | None, typer.Option(help="Column that says whose record it is; a row a user if not given.")
]


@app.command()
def plan(
    size: Size,
    epsilon: Epsilon,
    data: Annotated[
        Path | None, typer.Argument(help=f"Records: {FILES}; no value is read.")
    ] = None,
    user: User = None,
    users: Annotated[int | None, typer.Option(help="Instead of a file: how many users.")] = None,
    value: Annotated[
        str | None, typer.Option(help="Column to be averaged, for --missing public.")
    ] = None,
    missing: Missing = "refuse",
    delta: Delta = "0",
    order: Order = None,
    interval: Interval = None,
    bias: Bias = None,
    releases: Releases = 1,
    weights: Weights = Weighing.EQUAL,
    cap: Cap = None,
    interval_by: IntervalBy = None,
    method: Annotated[
        Method | None,
        typer.Option(help="Plan this one; with --output the recommended if not given."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Save one plan here (JSON).")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Certified errors of all estimators and the one to take, before any value is read.

    Example: shoal unbiased plan --users 2000 --epsilon 1 --delta 1e-6 --order 4 --size 15
    --interval 0 100 --releases 50
    """
    from shoal.means.recommend import recommend

    check_places({"DATA": data}, force=force, documents={"--output": output})
    counts = user_values(data, user, users, value, missing)
    moments = _moments(order, size)
    found = recommend(
        counts,
        epsilon=epsilon,
        delta=delta,
        moment=moments,
        interval=interval,
        bias=bias,
        releases=releases,
        weights=str(weights),
        cap=cap,
    )
    made: UnbiasedPlan | None = None
    if method is not None or output is not None:
        wanted = _wanted(found, method)
        request = {"epsilon": epsilon, "delta": delta, "interval": interval, "bias": bias}
        request["interval_by"] = _by(interval_by)
        own = _own(wanted, request, found[Method.CLIPPED_MEAN].plan)
        made = _plan(wanted, counts, moments, own, weights=weights, cap=cap)
    if made is not None and output is not None:
        made.save(output, overwrite=force)
    if as_json:
        show_json(found.to_document())
        return
    show(str(found))
    if made is not None:
        show(f"\n{made}")


@app.command()
def release(
    data: Data,
    value: Annotated[str, typer.Option(help="Column to be averaged. Private.")],
    ledger: Book,
    user: User = None,
    plan: Annotated[
        Path | None, typer.Option(help="Saved by `shoal unbiased plan --output`.")
    ] = None,
    method: Annotated[Method | None, typer.Option(help="Instead of a plan: the estimator.")] = None,
    epsilon: Annotated[str, typer.Option(help="Without a plan: largest loss.")] = "0",
    delta: Annotated[str, typer.Option(help="Without a plan: largest delta.")] = "0",
    order: Order = None,
    size: Annotated[
        list[float] | None, typer.Option(help="Without a plan: of the moments; repeat.")
    ] = None,
    interval: Interval = None,
    bias: Annotated[float | None, typer.Option(help="Budget of clipped_mean.")] = None,
    weights: Weights = Weighing.EQUAL,
    cap: Cap = None,
    interval_by: IntervalBy = None,
    missing: Missing = "refuse",
    name: Name = "",
    privacy_unit: PrivacyUnitName = "",
    manifest: Manifest = None,
    confidence: Confidence = 0.95,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Read the values once, draw, record result and charge together, deliver.

    Example: shoal unbiased release visits.csv --value minutes --user person --plan plan.json
    --ledger visits.ledger --manifest mean.json
    """
    from shoal.checks import check_confidence
    from shoal.data import keys

    request = {
        "method": method,
        "epsilon": epsilon,
        "delta": delta,
        "order": order,
        "size": size,
        "interval": interval,
        "bias": bias,
        "weights": weights,
        "cap": cap,
        "interval_by": _by(interval_by),
    }
    _one_way(plan, request)
    check_confidence(confidence)
    used = {"DATA": data, "--plan": plan, "--ledger": ledger}
    check_places(used, force=force, documents={"--manifest": manifest})
    loaded = None if plan is None else _load(plan)
    with working("reading values, drawing, recording"):
        table = read(data, value, user, missing)
        who = None if user is None else keys.as_array(table.column(user), "user")
        made = loaded or _requested(request, counted(table.num_rows, who))
        done = made.release(
            numbers(table, value),
            who,
            ledger=ledger,
            name=name,
            privacy_unit=privacy_unit or user or "",
            confidence=confidence,
            values_name=value,
        )
    with delivering(done.entry, ledger, (done.write_manifest, manifest), force=force):
        show_release(done, ledger, lambda: done.sentence, as_json=as_json)


@app.command()
def bound(
    users: Annotated[int, typer.Option(help="How many, one value each.", min=1)],
    size: Size,
    epsilon: Epsilon,
    delta: Delta = "0",
    order: Order = None,
    bias: Annotated[float, typer.Option(help="Most bias over the class; inf for any.")] = 0.0,
    interval: Interval = None,
    as_json: Json = False,
) -> None:
    """What no private estimator can beat for these numbers, and who comes closest.

    Example: shoal unbiased bound --users 10000 --epsilon 0.1 --bias 0.01 --size 1
    """
    from shoal.errors import InputError
    from shoal.means.recommend import worst_moment
    from shoal.theory.trilemma import trilemma

    if interval is not None and not interval[0] < interval[1]:
        raise InputError("an empty interval", "the lower end first", "give for example 0 10")
    width = None if interval is None else interval[1] - interval[0]
    found = trilemma(users, epsilon, delta, bias, worst_moment(_moments(order, size)), width=width)
    if not as_json:
        show(str(found))
        return
    show_json(
        {
            "rmse": _finite(found.rmse),
            "terms": [
                {"rmse": _finite(term.rmse), "source": term.source, "holds": term.holds}
                for term in found.terms
            ],
            "regime": found.regime.name,
            "sentence": found.regime.sentence,
        }
    )


def _finite(number: float) -> float | None:
    """JSON knows no infinity: a bound that is infinite is null."""
    return number if abs(number) < float("inf") else None


def _moments(orders: list[float] | None, sizes: list[float] | None) -> "Moments":
    from shoal.errors import InputError
    from shoal.theory.clipping import Moment, moments_of

    given = orders or [2.0]
    if not sizes or len(given) != len(sizes):
        raise InputError(
            f"{len(given)} orders and {len(sizes or [])} sizes of moments",
            "a size for each order",
            "give for example --order 4 --size 1.5",
        )
    pairs = zip(given, sizes, strict=True)
    return moments_of(tuple(Moment(order, size) for order, size in pairs))


def _load(path: Path) -> "UnbiasedPlan":
    from shoal.unbiased import UnbiasedPlan

    return UnbiasedPlan.load(path)


_NOT_GIVEN: tuple[Any, ...] = (None, "0", Weighing.EQUAL, False)


def _one_way(plan: Path | None, request: dict[str, Any]) -> None:
    """Refuse a plan together with parts of a request, and neither."""
    from shoal.errors import InputError

    given = [name for name, request in request.items() if request not in _NOT_GIVEN]
    if plan is None and request["method"] is None:
        raise InputError(
            "neither a plan nor a method",
            "--plan, or --method and its parts of a request",
            "give --plan",
        )
    if plan is not None and given:
        raise InputError(
            f"a plan and --{given[0].replace('_', '-')}",
            "a plan alone: it has all parts of a request",
            "leave the parts of a request out, or the plan",
        )


def _requested(request: dict[str, Any], counts: Any) -> "UnbiasedPlan":
    return _plan(
        str(request["method"]),
        counts,
        _moments(request["order"], request["size"]),
        {name: request[name] for name in ("epsilon", "delta", "interval", "bias", "interval_by")},
        weights=request["weights"],
        cap=request["cap"],
    )


def _by(by: By | None) -> str | None:
    return None if by is None else str(by)


def _wanted(found: "Recommendation", method: Method | None) -> str:
    """The estimator to plan: the one that is named, or the recommended."""
    from shoal.errors import InputError

    if method is not None:
        return str(method)
    if found.recommended is None:
        raise InputError(
            "no estimator is possible", "allow some bias with an interval, or some delta"
        )
    return found.recommended.method


def _own(method: str, given: dict[str, Any], clipped: "UnbiasedPlan | None") -> dict[str, Any]:
    """The options that a method has; of biases the best one within what is accepted."""
    lacks = {
        Method.CLIPPED_MEAN: {"delta"},
        Method.SYMMETRIC_MEAN: {"bias", "interval"},
    }[Method(method)]
    best = {} if clipped is None else {"bias": clipped.request.bias}
    return {name: value for name, value in {**given, **best}.items() if name not in lacks}


def _plan(
    method: str,
    counts: Any,
    moments: "Moments",
    request: dict[str, Any],
    *,
    weights: Weighing,
    cap: int | None,
) -> "UnbiasedPlan":
    from shoal import unbiased

    return unbiased.plan(
        method,
        counts,
        moment=moments,
        weights=str(weights),
        cap=cap,
        **request,
    )
