"""Compares the certified errors of methods at several losses: see `Plan.frontier`."""

from collections.abc import Sequence
from fractions import Fraction

from shoal import checks
from shoal.cells.comparisons.comparison import (
    LEAST_SPENT,
    Choice,
    Comparison,
    LeftOut,
    P,
    Row,
    checked_choice,
    label,
)
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.plan_file import met
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.methods import METHODS, MOST_PAIRS, method_of
from shoal.cells.planners.planner import make_plan
from shoal.errors import InputError
from shoal.privacy.budget import Amount, check_epsilon, show
from shoal.progress import Progress, tracked


def frontier(
    base: P,
    methods: Sequence[str | Choice] | None,
    epsilons: Sequence[Amount] | None,
    progress: Progress | None,
) -> Comparison[P]:
    """Returns certified errors of methods, by default of all that certify; see `Plan.frontier`."""
    too_slow: list[Choice] = []
    if methods is None:
        choices, too_slow = _certifying(base)
    else:
        choices = [checked_choice(one, tuple(METHODS)) for one in checks.items(methods, "methods")]
    if epsilons is None:
        # The plan's loss, and from an eighth of it to eight times it.
        loss = base.request.epsilon or Fraction(show(base.exact_epsilon, 3))
        losses = [loss * Fraction(2) ** step for step in range(-3, 4)]
    else:
        losses = sorted({check_epsilon(each) for each in checks.items(epsilons, "epsilons")})
    # A method that was named twice is planned once.
    by_label = {label(choice): choice for choice in choices}
    work = [(choice, epsilon) for choice in by_label.values() for epsilon in losses]
    rows = []
    left_out = []
    for choice, epsilon in tracked(work, "planning", progress):
        try:
            rows.append(Row(label(choice), epsilon, _spending_all(base, choice, epsilon)))
        except InputError as error:
            left_out.append(LeftOut(label(choice), epsilon, str(error)))
    if not rows:
        method, epsilon, reason = left_out[0]
        raise InputError(
            f"no method has a plan ({method} at epsilon {show(epsilon)}: {reason.rstrip('.')})",
            "compare other methods or other values of epsilon",
        )
    return Comparison(tuple(rows), tuple(left_out), unnamed=tuple(map(label, too_slow)))


def _certifying(base: Facts) -> tuple[list[Choice], list[Choice]]:
    """Returns the methods that certify, and those left out as they take long on such counts."""
    of_plan: Choice = (base.method, base.decision.method.settings)
    choices: list[Choice] = [(name, {}) for name in METHODS if not method_of(name).means_alone]
    choices.append(("optimal", {"targets": "balanced"}))
    too_slow = []
    if len(base.counts.user) > MOST_PAIRS:
        too_slow = [each for each in choices if method_of(*each).takes_long and each != of_plan]
        choices = [each for each in choices if each not in too_slow]
    if label(of_plan) not in map(label, choices):
        choices = [of_plan, *choices]
    return choices, too_slow


def _spending_all(base: P, choice: Choice, epsilon: Fraction) -> P:
    """Returns the method's plan that spends as much of epsilon as it can, and never more."""
    plan = _plan_at(base, choice, epsilon)
    spent = plan.exact_epsilon
    leaves_much = 0 < spent < epsilon * LEAST_SPENT
    if not plan.decision.method.overcounts or not leaves_much:
        return plan
    # The method is asked for more, in six digits, so that it spends nearly all of epsilon.
    asked = Fraction(show(epsilon * epsilon / spent * (1 - Fraction(1, 10**5)), 6))
    try:
        fuller = _plan_at(base, choice, asked)
    except InputError:
        return plan
    return fuller if spent < fuller.exact_epsilon <= epsilon else plan


def _plan_at(base: P, choice: Choice, epsilon: Fraction) -> P:
    """Returns a plan by another method and loss that keeps all cells of the public rules."""
    name, settings = choice
    asked = base.request.model_dump(exclude={"error", "max_error", "objective", "range"})
    asked |= {"epsilon": epsilon, "method": name, "settings": settings, "uninformative": "keep"}
    if not method_of(name, settings).takes_delta:
        # The method draws Laplace noise, which needs none of the plan's delta.
        asked["delta"] = 0
    facts = met(make_plan(base.counts, Request.of(**asked)))
    return base.like(facts)
