"""The plan explorer: plans of several methods at several losses, before any value is read."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from shoal import checks
from shoal.cells.frontier.errors import LeftOut, P, Point
from shoal.cells.frontier.frontier import Frontier
from shoal.cells.methods import METHODS, checked_settings, method_of
from shoal.errors import InputError
from shoal.privacy.budget import check_epsilon, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.request import Request
    from shoal.privacy.budget import Amount

    Settings: TypeAlias = Mapping[str, str | int | float]
    Choice: TypeAlias = tuple[str, Settings]
    Ask: TypeAlias = tuple[Choice, Fraction]
    Progress: TypeAlias = Callable[[Iterable[Ask], int], Iterable[Ask]]

_STEPS = range(-3, 4)


def compare_plans(
    base: P,
    make: Callable[..., P],
    methods: Sequence[str | Choice] | None = None,
    epsilons: Sequence[Amount] | None = None,
    progress: Progress | None = None,
) -> Frontier[P]:
    """Errors of several methods at several losses, for the cells and parts of a request of a plan.

    Counts, bounds, statistics, public rules, weights and delta are those of the plan. Uninformative
    cells are kept, so that all methods are compared on the same cells. Methods are compared at
    equal loss: `uniform` and `clip_user` count losses as the paper does, higher than they are, and
    are asked for more if exact accounting finds that they spend less; none ever goes beyond.

    Args:
        base: The plan to start from; it is not changed.
        make: Makes a plan, as `shoal.plan` does.
        methods: Names, or pairs of a name and its settings; by default `default_methods(base)`.
        epsilons: Losses; by default the plan's, and that times 1/8, 1/4, 1/2, 2, 4, 8.
        progress: Wraps the work, to show how far it is: gets the items and how many they are.

    Raises:
        InputError: An unknown method, an epsilon that no plan can have, or no method has a plan
            at any loss. A method that has none at some loss is left out there, with the reason.

    Example:
        >>> import shoal
        >>> counts = shoal.Counts.from_counts(["a", "b", "c", "a"], [1, 1, 1, 2], [2, 2, 4, 9])
        >>> plan = shoal.plan(counts, bounds=(0, 10), epsilon=8)
        >>> found = compare_plans(plan, shoal.plan, ["balanced", "equalised"], [4, 8])
        >>> found.table()["worst"].to_numpy().round(2).tolist()
        [0.5, 0.25, 0.31, 0.16, 0.25, 0.12]
    """
    if methods is None:
        choices = default_methods(base)
    else:
        choices = tuple(_choice(one) for one in checks.items(methods, "methods"))
    losses = default_epsilons(base) if epsilons is None else _losses(epsilons)
    asks = [
        (choice, epsilon) for choice in dict.fromkeys(map(label, choices)) for epsilon in losses
    ]
    named = {label(choice): choice for choice in choices}
    work: list[Ask] = [(named[name], epsilon) for name, epsilon in asks]
    points, left_out = [], []
    for choice, epsilon in work if progress is None else progress(work, len(work)):
        try:
            points.append(Point(label(choice), epsilon, _at(base, make, choice, epsilon)))
        except InputError as error:
            left_out.append(LeftOut(label(choice), epsilon, str(error)))
    if not points:
        first = left_out[0]
        raise InputError(
            f"no method with a plan ({first.method} at epsilon {show(first.epsilon)}: "
            f"{first.reason.rstrip('.')})",
            "at least one",
            "compare other methods or losses",
        )
    return Frontier(tuple(points), tuple(left_out))


def default_methods(base: PlanFacts) -> tuple[Choice, ...]:
    """What a plan is compared with by default: its own method, and all that certify any statistic.

    Methods that select a private range have no certificate, and their noise is a part of a range
    that nobody knows yet: `shoal.compare` is for them.
    """
    known: list[Choice] = [(name, {}) for name in METHODS if not method_of(name).means_alone]
    known.append(("optimal", {"targets": "balanced"}))
    own: Choice = (base.method, base.decision.method.settings)
    if label(own) not in {label(each) for each in known}:
        known.insert(0, own)
    return tuple(known)


def default_epsilons(base: PlanFacts) -> tuple[Fraction, ...]:
    """The plan's loss, and it times 1/8, 1/4, 1/2, 2, 4 and 8."""
    epsilon = base.request.epsilon or Fraction(show(base.exact_epsilon, 3))
    return tuple(epsilon * Fraction(2) ** step for step in _STEPS)


def label(choice: Choice) -> str:
    """A method with its settings, as it is named in tables and pictures.

    Example:
        >>> label(("optimal", {"targets": "balanced"})), label(("uniform", {}))
        ('optimal (targets=balanced)', 'uniform')
    """
    name, settings = choice
    said = ", ".join(f"{each}={settings[each]}" for each in sorted(settings))
    return f"{name} ({said})" if said else name


def _at(base: P, make: Callable[..., P], choice: Choice, epsilon: Fraction) -> P:
    """The method's plan that spends as much of epsilon as it can."""
    made = _plan(base, make, choice, epsilon)
    spent = made.exact_epsilon
    if not made.decision.method.overcounts or spent == 0 or not Point("", epsilon, made).unspent:
        return made
    try:
        other = _plan(base, make, choice, _short(epsilon * epsilon / spent))
    except InputError:
        return made
    return other if spent < other.exact_epsilon <= epsilon else made


def _short(epsilon: Fraction) -> Fraction:
    """At most epsilon, with about six digits."""
    return Fraction(show(epsilon * (1 - Fraction(1, 10**5)), 6))


def _plan(base: P, make: Callable[..., P], choice: Choice, epsilon: Fraction) -> P:
    request, (method, settings) = base.request, choice
    return make(
        base.counts,
        bounds=base.bounds,
        statistics=request.statistics,
        epsilon=epsilon,
        method=method,
        uninformative="keep",
        min_users=request.min_users,
        min_records=request.min_records,
        weights=request.weights,
        settings=settings,
        delta=_delta(request, choice),
        tick_bits=base.lattice.bits,
        source=getattr(base, "source", None),
    )


def _delta(request: Request, choice: Choice) -> Fraction:
    # Others draw Laplace noise, which needs none of the delta that was granted.
    return request.delta if method_of(*choice).takes_delta else Fraction(0)


def _choice(method: object) -> Choice:
    found = (method, {}) if isinstance(method, str) else checks.items(method, "a method", most=2)
    if len(found) == 1:
        found = [*found, {}]
    name = checks.choice(found[0], METHODS, "method")
    return name, checked_settings(name, checks.mapping(found[1], "settings"))


def _losses(epsilons: object) -> tuple[Fraction, ...]:
    return tuple(sorted({check_epsilon(each) for each in checks.items(epsilons, "epsilons")}))
