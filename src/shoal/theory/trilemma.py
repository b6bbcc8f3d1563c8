"""Bounds the error of private estimators of a mean from below, given their bias (paper 004).

The best of several proven lower bounds is taken; proofs: `docs/theory/means.md#the-trilemma`.
"""

import math
from dataclasses import dataclass

from shoal import checks
from shoal.errors import InputError
from shoal.theory import paths
from shoal.theory.problem import Amount, Moment, Setting, downwards

# The largest bias of Theorem 2.1.1, in sizes of the moment.
_MOST_BIAS = 1 / 80
# The largest gamma in that theorem.
_MOST_GAMMA = 1 / 5
# The order of the moment in Theorem 2.1.4.
_VARIANCE = 2
# The hyperbolic sine of a larger epsilon overflows.
_MOST_EPSILON = 700


@dataclass(frozen=True)
class Term:
    """One lower bound on the root mean squared error, with its theorem and its conditions.

    Source: docs/theory/means.md#the-trilemma; paper 004, section 2.

    Attributes:
        rmse: The bound in the value's unit; 0 where its conditions do not hold.
        source: The theorem.
        condition: The conditions of the theorem.
        holds: Whether its conditions hold.
    """

    rmse: float
    source: str
    condition: str
    holds: bool = True


@dataclass(frozen=True)
class Trilemma:
    """A lower bound on the root mean squared error, with its reasons.

    Source: docs/theory/means.md#the-trilemma.

    Attributes:
        rmse: No (epsilon, delta)-private estimator with this bias has a smaller RMSE over the whole
            class, in the value's unit; infinite if no estimator has a finite one.
        terms: Every bound that was tried, the largest first.
        setting: The problem, in units of the moment's size.

    Guarantees: G-BOUND.
    """

    rmse: float
    terms: tuple[Term, ...]
    setting: Setting

    @property
    def price(self) -> float:
        """The ratio of `rmse` to the bound without privacy: 1 where privacy costs nothing."""
        free = next(term.rmse for term in self.terms if term.source == _STATISTICS)
        return self.rmse / free

    def __str__(self) -> str:
        """The bound, its terms, and the command that chooses an estimator."""
        lines = [f"no RMSE below {self.rmse:.4g}: {self.terms[0].source}"]
        lines += [f"  {term.rmse:.4g}  {term.source}; {term.condition}" for term in self.terms]
        return "\n".join([*lines, _NEXT])


_STATISTICS = "statistics alone (van Trees; Hodges and Lehmann)"
_ALWAYS = "it always holds"
_NEXT = "shoal.unbiased.recommend (shoal mean plan) compares the certified errors of the estimators"


def trilemma(
    n: int,
    epsilon: Amount,
    delta: Amount,
    bias: float,
    moment: Moment,
    *,
    width: float | None = None,
) -> Trilemma:
    """Least RMSE of any (epsilon, delta)-private mean of n values whose bias is at most `bias`.

    For every estimator M of n independent values that is private when one value is replaced: if
    |E M - mean| <= bias for all distributions with E|X - mean|^order <= size^order and a mean in an
    interval of length `width`, then the RMSE of one of them is at least `rmse`, the largest of

    - the path bound with and without the bias (`docs/theory/means.md#the-trilemma`; hundreds of
      times the printed one),
    - paper 004, Theorem 2.1.1, and Theorem 2.1.4 for order 2, as printed,
    - the error of the best estimator without privacy.

    For order 2, small epsilon and bias and delta = 0, it is about size^2 / (2 n epsilon bias). It
    says nothing about smaller classes: symmetric distributions allow less.

    Args:
        n: Users, one value each.
        epsilon: Privacy loss, from 0; may be 0 if delta is not.
        delta: From 0 to below 1.
        bias: Most bias, in the value's unit; infinite if nothing is promised.
        moment: (order, size), or an object with these; order from 2, size in the value's unit.
        width: Length of the interval that holds the mean, in the value's unit; without it, the
            size of the moment.

    Returns:
        The bound, rounded downwards, with its terms.

    Raises:
        InputError: A number is outside its range.

    Guarantees: G-BOUND.

    Example:
        >>> found = trilemma(10_000, epsilon=0.1, delta=0, bias=0.01, moment=(2, 1.0))
        >>> round(found.rmse, 4), found.terms[0].source
        (0.05, 'path bound with this bias (after Theorem 2.1.1)')
        >>> trilemma(10_000, epsilon=1, delta=0, bias=0, moment=(4, 1.0)).rmse
        inf
    """
    setting = Setting.of(n, epsilon, delta, bias, moment, width)
    path = paths.path_bounds(setting)
    free = max(paths.normal_bound(setting), paths.coin_bound(setting), paths.bit_bound(setting))
    terms = [
        Term(path.promised, "path bound with this bias (after Theorem 2.1.1)", _ALWAYS),
        Term(path.always, "path bound whatever the bias", _ALWAYS),
        Term(free, _STATISTICS, _ALWAYS),
        _printed(setting),
    ]
    if setting.order == _VARIANCE:
        terms.append(_variance_form(setting))
    terms.append(
        Term(
            paths.printed_bound(setting),
            "Proposition A.2.1 as printed",
            "the mean may be anywhere in [0, size]",
            setting.width >= 1,
        )
    )
    # Terms are in sizes of the moment until here.
    scaled = [
        Term(downwards(term.rmse) * setting.size, term.source, term.condition, term.holds)
        for term in terms
    ]
    scaled.sort(key=lambda term: -term.rmse)
    return Trilemma(scaled[0].rmse, tuple(scaled), setting)


def distance_to_bound(rmse: float, bound: Trilemma) -> float:
    """The ratio of a certified RMSE to a lower bound; below 1 only for smaller classes.

    Source: docs/theory/means.md#the-trilemma.

    Args:
        rmse: Certified root mean squared error, in the value's unit.
        bound: The lower bound for the same users, budget, bias and moment.

    Returns:
        The ratio, from 1 on within the bound's class.

    Raises:
        InputError: The error is not finite and above 0, or no estimator has a finite one.

    Example:
        >>> found = trilemma(10_000, epsilon=0.1, delta=0, bias=0.01, moment=(2, 1.0))
        >>> round(distance_to_bound(0.0749, found), 1)
        1.5
    """
    checks.instance(bound, Trilemma, "bound", "give what `trilemma` returns")
    error = checks.number(rmse, "rmse", above=0)
    if bound.rmse == math.inf:
        raise InputError(
            "the bound is infinite: without bias and delta no private estimator has a finite error",
            "allow some bias or delta",
        )
    return error / bound.rmse


def _printed(setting: Setting) -> Term:
    """Returns the bound of Theorem 2.1.1 with tau = sqrt(delta) and the best gamma."""
    condition = "needs a bias of at most size/80 and a mean anywhere in [0, size]"
    source = "Theorem 2.1.1 as printed"
    if setting.bias > _MOST_BIAS or setting.width < 1:
        return Term(0.0, source, condition, holds=False)
    strength = _sinh(setting.epsilon)
    tau = math.sqrt(setting.delta)
    exponent = 1 / (setting.order - 1)
    smallest_gamma = 16 * setting.bias
    best_gamma = 0.0
    if tau > 0:
        ratio = tau / (2 * exponent * strength) if strength > 0 else math.inf
        best_gamma = ratio ** (1 / (1 + exponent))
    gamma = min(max(best_gamma, smallest_gamma), _MOST_GAMMA)
    if gamma == 0:
        # Neither bias nor delta: as gamma falls to 0 the bound grows without limit.
        return Term(math.inf, source, condition)
    cost = 32 * setting.n * strength * gamma**exponent + 16 * setting.n * tau / gamma
    return Term(1 / cost, source, condition)


def _variance_form(setting: Setting) -> Term:
    """Returns the private part of Theorem 2.1.4: order 2 and delta <= (2 sinh(epsilon)/25)^2."""
    condition = "needs Theorem 2.1.1's conditions and delta <= (2 sinh(epsilon)/25)^2"
    source = "Theorem 2.1.4 as printed"
    strength = _sinh(setting.epsilon)
    tau = math.sqrt(setting.delta)
    holds = setting.bias <= _MOST_BIAS and setting.width >= 1 and tau <= 2 / 25 * strength
    if not holds:
        return Term(0.0, source, condition, holds=False)
    gamma = max(16 * setting.bias, math.sqrt(tau / (2 * strength)))
    if gamma == 0:
        # Neither bias nor delta: as gamma falls to 0 the bound grows without limit.
        return Term(math.inf, source, condition)
    return Term(1 / (64 * setting.n * strength * gamma), source, condition)


def _sinh(epsilon: float) -> float:
    """Returns sinh(epsilon), or infinity where it might overflow: a bound is then 0, and holds."""
    return math.sinh(epsilon) if epsilon < _MOST_EPSILON else math.inf
