"""Certified errors of methods at several losses, with a plan for each: see `Plan.frontier`."""

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
    """Certified errors of methods, by default all that certify; see `Plan.frontier`."""
    unnamed: list[Choice] = []
    if methods is None:
        own: Choice = (base.method, base.decision.method.settings)
        every: list[Choice] = [(name, {}) for name in METHODS if not method_of(name).means_alone]
        choices = [*every, ("optimal", {"targets": "balanced"})]
        if len(base.counts.user) > MOST_PAIRS:
            unnamed = [each for each in choices if method_of(*each).takes_long and each != own]
            choices = [each for each in choices if each not in unnamed]
        choices = choices if label(own) in map(label, choices) else [own, *choices]
    else:
        choices = [checked_choice(one, METHODS) for one in checks.items(methods, "methods")]
    if epsilons is None:
        loss = base.request.epsilon or Fraction(show(base.exact_epsilon, 3))
        losses = [loss * Fraction(2) ** step for step in range(-3, 4)]
    else:
        losses = sorted({check_epsilon(each) for each in checks.items(epsilons, "epsilons")})
    named = {label(choice): choice for choice in choices}
    work = [(choice, epsilon) for choice in named.values() for epsilon in losses]
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
    return Comparison(tuple(rows), tuple(left_out), unnamed=tuple(map(label, unnamed)))


def _spending_all(base: P, choice: Choice, epsilon: Fraction) -> P:
    """The method's plan that spends as much of epsilon as it can, and never more."""
    found = _plan_at(base, choice, epsilon)
    spent = found.exact_epsilon
    if not found.decision.method.overcounts or not 0 < spent < epsilon * LEAST_SPENT:
        return found
    # At most epsilon, with about six digits.
    more = Fraction(show(epsilon * epsilon / spent * (1 - Fraction(1, 10**5)), 6))
    try:
        other = _plan_at(base, choice, more)
    except InputError:
        return found
    return other if spent < other.exact_epsilon <= epsilon else found


def _plan_at(base: P, choice: Choice, epsilon: Fraction) -> P:
    """Returns a plan by another method and loss that keeps all cells of the public rules."""
    asked = base.request.model_dump(exclude={"error", "max_error", "objective", "range"})
    asked |= {"epsilon": epsilon, "method": choice[0], "settings": choice[1]}
    asked["uninformative"] = "keep"
    if not method_of(*choice).takes_delta:
        # It draws Laplace noise, which needs none of the delta that was granted.
        asked["delta"] = 0
    facts = met(make_plan(base.counts, Request.of(**asked)))
    return base.like(facts)
