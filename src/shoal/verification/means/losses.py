"""Privacy loss of an unbiased mean from its whole numbers: exact fractions, tails outwards."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

from shoal.verification.means.facts import CLIPPED, RESIDUAL, SAMPLED, SYMMETRIC, Facts
from shoal.verification.means.squares import Beside, fits

# The sampler adds noise of scale 2^54 at most to whole numbers of at most 2^60.
_CAPACITY, _MOST_BITS = 2**60, 54
_MOST_TICKS, _MOST_EDGE, _MOST_EXPONENT, _FINE = 2**22, 2**52, 400, 60
_FARTHEST_BINS = 60
_DIGITS = 60
_SURE = Fraction(1, 10**50)
# exp(-10^4) stands for all smaller numbers.
_FAR = 10**4


def parameters_hold(facts: Facts) -> tuple[bool, str]:
    """Whether the mechanism can run with these numbers, and does what its proof is about."""
    checks = {CLIPPED: _grid, SAMPLED: _sampling, RESIDUAL: _residual, SYMMETRIC: _symmetric}
    holds = facts.rising and checks[facts.method](facts) and fits(facts)
    return holds, f"{facts.method} of {len(facts.weight)} users"


def exact_loss(facts: Facts) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of the user who loses most.

    A user of weight w whose value is one of so many ticks moves the weighed sum by w times these;
    each tick is worth `per_unit` steps of Laplace noise of scale 2^bits steps. A sampled user
    is seen with the sampling probability. Two steps on the same users add up; on different users
    the larger counts.
    """
    if facts.method == SAMPLED:
        return Fraction(0), facts.chance
    numbers = facts.parameters
    symmetric = facts.method == SYMMETRIC
    ticks = 2 * numbers["half"] if symmetric else numbers["high"] - numbers["low"]
    sensitivity = int(facts.final.max()) * ticks * numbers["per_unit"]
    last = Fraction(sensitivity, 2 ** numbers["lattice_bits"])
    second = Beside.of(facts).loss() if facts.normal else last, facts.chance
    if not symmetric:
        return second
    first = _first(facts)
    if numbers["reuse"]:
        return first[0] + second[0], first[1] + second[1]
    return max(first[0], second[0]), max(first[1], second[1])


def _first(facts: Facts) -> tuple[Fraction, Fraction]:
    """Of the coarse step, and of a middle step on the same users.

    Moving to another bin takes a user from one score and gives it to another. With two windows
    each, one that only a neighbour has costs a factor 1/(1 - p) <= exp(2p) more.
    """
    numbers, alone = facts.parameters, _alone(facts)
    epsilon = Fraction(2 * numbers["coarse_per_user"], 2 ** numbers["coarse_bits"])
    if numbers["coarse_windows"] > 1:
        epsilon += 2 * alone
    sensitivity = 2 * numbers["middle_half"] * numbers["middle_per_unit"]
    # What is charged for the coarse step is at least its own: see `_coarse`.
    return epsilon + Fraction(sensitivity, 2 ** numbers["middle_bits"]), facts.coarse_delta


def _alone(facts: Facts) -> Fraction:
    """P[one user alone in a bin is above the threshold], upwards."""
    numbers = facts.parameters
    above = numbers["coarse_threshold"] - numbers["coarse_per_user"]
    return tail_above(above, numbers["coarse_bits"])


def tail_above(steps: int, bits: int) -> Fraction:
    """P[Z >= k] = exp(-k/2^j)/(1 + exp(-1/2^j)) for discrete Laplace noise and k >= 0, upwards.

    Example:
        >>> float(tail_above(0, 0)) >= 1 / (1 + 2.718281828459045**-1)
        True
    """
    scale = Fraction(2**bits)
    high = _exponential(-min(Fraction(steps) / scale, Fraction(_FAR))) * (1 + _SURE)
    return high / (1 + _exponential(-1 / scale) * (1 - _SURE))


def _exponential(power: Fraction) -> Fraction:
    """Exp of a fraction whose denominator is a power of two, to 50 digits."""
    with localcontext(Context(prec=_DIGITS)):
        return Fraction((Decimal(power.numerator) / Decimal(power.denominator)).exp())


def _noise(per_unit: int, bits: int, most: int) -> bool:
    """Whether sums up to a size are within the capacity of the sampler."""
    return per_unit > 0 and 0 <= bits <= _MOST_BITS and most * per_unit <= _CAPACITY


def _grid(facts: Facts) -> bool:
    numbers = facts.parameters
    low, high, exponent = numbers["low"], numbers["high"], numbers["tick_exponent"]
    if facts.interval is None or abs(exponent) > _MOST_EXPONENT:
        return False
    tick = Fraction(2) ** exponent
    return (
        0 < high - low <= _MOST_TICKS + 2
        and max(abs(low), abs(high)) <= _MOST_EDGE
        and low * tick <= Fraction(facts.interval[0])
        and Fraction(facts.interval[1]) <= high * tick
        and _noise(
            numbers["per_unit"],
            numbers["lattice_bits"],
            int(facts.weight.sum()) * ((high - low) // 2 + 1),
        )
    )


def _sampling(facts: Facts) -> bool:
    return 0 < facts.chance <= 1


def _residual(facts: Facts) -> bool:
    return _grid(facts) and _sampling(facts)


def _symmetric(facts: Facts) -> bool:
    numbers, users = facts.parameters, len(facts.weight)
    first, reuse = numbers["coarse_users"], numbers["reuse"]
    if reuse not in (0, 1) or not 0 < first <= users or (first == users) != (reuse == 1):
        return False
    return (
        facts.reuse in (None, reuse == 1)
        and _coarse(facts)
        and 1 <= numbers["shift"] < _FINE
        and 0 < numbers["half"] <= _MOST_TICKS
        and _noise(
            numbers["per_unit"], numbers["lattice_bits"], numbers["half"] * int(facts.final.sum())
        )
        and _middle(numbers)
        and _sampling(facts)
    )


def _middle(numbers: dict[str, int]) -> bool:
    """A finer guess around the first, or zeros."""
    half, shift = numbers["middle_half"], numbers["middle_shift"]
    per_unit, bits = numbers["middle_per_unit"], numbers["middle_bits"]
    if half == 0:
        return (shift, per_unit, bits) == (0, 0, 0)
    fits = 0 < half <= _MOST_TICKS and 1 <= shift < _FINE
    return fits and _noise(per_unit, bits, half * numbers["coarse_users"])


def _coarse(facts: Facts) -> bool:
    numbers = facts.parameters
    worth, bits = numbers["coarse_per_user"], numbers["coarse_bits"]
    threshold = numbers["coarse_threshold"]
    sound = (
        worth > 0
        and numbers["coarse_windows"] in (1, 2)
        and abs(numbers["coarse_exponent"]) <= _MOST_EXPONENT
        and numbers["coarse_users"] * worth <= _CAPACITY
        and 0 <= bits <= _MOST_BITS
        and worth < threshold <= _CAPACITY
        # Values are cut off at 2^61 bins: means nearly as far have no certificate.
        and facts.farthest <= 2.0 ** (numbers["coarse_exponent"] + _FARTHEST_BINS)
    )
    if not sound:
        return False
    alone = numbers["coarse_windows"] * _alone(facts)
    # Bins that appear cost a factor 1/(1 - p) each at most: no more than another m steps.
    kept = _exponential(-min(Fraction(worth, 2**bits), Fraction(_FAR))) * (1 + _SURE)
    return alone <= facts.coarse_delta < 1 and alone <= 1 - kept
