"""Computes intervals for normal sampling, Laplace noise, and variances that are known with noise.

Source: docs/theory/experiments.md#intervals.
"""

import functools
import itertools
import math

import numpy as np

from shoal import checks
from shoal.errors import InputError

# The range of confidences for which `_FACTORS` are known.
LEAST_CONFIDENCE = 0.8
MOST_CONFIDENCE = 0.995
# The distance of frequencies of a standardised variable, at which aliasing is below 1e-30.
_STEP = 0.1
# The last frequency.
_LAST = 300.0
_FREQUENCIES = np.arange(_STEP / 2, _LAST, _STEP)
_SQUARES = _FREQUENCIES**2
# A weight whose logarithm is below this is negligible beside a probability.
_LEAST = -45.0
# The largest quantile, in standard deviations.
_FURTHEST = 40.0
# Beyond this many standard deviations, a normal variable has 1e-18 of its mass.
_REACH = 9.0
# An effect of this many standard errors has power 1.
_FAR = 1e9
# With fewer degrees of freedom, quantiles are beyond floating-point numbers.
_LEAST_DEGREES = 0.1
# With more degrees of freedom, quantiles are normal to the last place.
_NORMAL_DEGREES = 1e12
# The largest power.
_MOST_POWER = 1 - 1e-12
# Ratios b2/b1^2 for which factors are known; between them factors are linear in the logarithm.
_RATIOS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# The factors a of `half_width` by confidence, one for each ratio. They were found by quadrature
# over all V, for one Laplace variable, for sums and for the normal limit, and rounded upwards.
_FACTORS = {
    0.80: (0.03, 0.08, 0.18, 0.31, 0.40, 0.45, 0.47, 0.48),
    0.90: (0.03, 0.07, 0.17, 0.38, 0.53, 0.61, 0.63, 0.65),
    0.95: (0.03, 0.07, 0.18, 0.43, 0.65, 0.75, 0.78, 0.80),
    0.98: (0.03, 0.07, 0.18, 0.46, 0.79, 0.94, 0.96, 0.98),
    0.99: (0.03, 0.07, 0.18, 0.48, 0.89, 1.07, 1.10, 1.12),
    0.995: (0.03, 0.07, 0.18, 0.49, 0.97, 1.19, 1.22, 1.24),
}


def quantile(
    confidence: float,
    sampling: float = 1.0,
    noise: float = 0.0,
    terms: float = 1.0,
    degrees: float = math.inf,
) -> float:
    """Returns x with P[|X| <= x] = confidence, for X normal plus Laplace noise, all independent.

    X has the characteristic function exp(-V t^2/2) (1 + M t^2/(2 m))^-m. V is the variance
    `sampling`, M the variance `noise` of all Laplace variables, and m the number `terms` of these;
    if their variances v differ, m = M^2/sum v^2 gives the right fourth moment. A sampling variance
    with few degrees of freedom is multiplied by the square of Student's quantile, divided by the
    normal one.
    """
    normal = student(math.inf, confidence)
    total = (student(degrees, confidence) / normal) ** 2 * sampling + noise
    if noise <= 0 or total <= 0:
        return normal * math.sqrt(max(total, 0.0))
    return _standardised(confidence, noise / total, terms) * math.sqrt(total)


@functools.lru_cache(maxsize=4096)
def _standardised(confidence: float, share: float, terms: float) -> float:
    """Returns the quantile for variance 1, a share of it by noise, by Gil-Pelaez' integral."""
    from scipy.optimize import brentq

    # The logarithm of the characteristic function, which falls with the frequency t.
    log_characteristic = (share - 1) * _SQUARES / 2 - terms * np.log1p(
        share * _SQUARES / (2 * terms)
    )
    # If nearly all of the variance is normal, high frequencies have no weight.
    n_frequencies = len(_SQUARES) - int(np.searchsorted(log_characteristic[::-1], _LEAST))
    t = _FREQUENCIES[:n_frequencies]
    weight = np.exp(log_characteristic[:n_frequencies]) / t * (2 * _STEP / math.pi)

    def excess(x: float) -> float:
        """Returns how much the probability of |X| <= x exceeds the confidence."""
        return float(np.sin(x * t) @ weight) - confidence

    return float(brentq(excess, 0.0, _FURTHEST, xtol=1e-10))


def half_width(
    confidence: float,
    variance: float,
    noise: float = 0.0,
    terms: float = 1.0,
    variance_noise: float = 0.0,
    degrees: float = math.inf,
) -> float:
    """Returns half of an interval whose sampling variance may be known with noise.

    It is the `quantile` for V = max(`variance`, 0) + a b2, where b2 = `variance_noise` is the scale
    of the noise of `variance`. By quadrature, the factors a for each b2/b1^2, with 2 b1^2 =
    `noise`, make intervals cover whatever the true variance is; there is no proof
    (docs/theory/experiments.md#an-honest-interval).
    """
    raised = max(variance, 0.0)
    if variance_noise > 0:
        ratio = 2 * variance_noise / noise if noise > 0 else math.inf
        raised += added_noise(confidence, ratio) * variance_noise
    return quantile(confidence, raised, noise, terms, degrees)


def added_noise(confidence: float, ratio: float) -> float:
    """Returns the factor a of `half_width`, the larger one of the two nearest confidences."""
    confidence = check_level(confidence)
    log_ratio = math.log(max(ratio, _RATIOS[0]))
    log_ratios = np.log(_RATIOS)
    above = min(each for each in _FACTORS if each >= confidence)
    below = max(each for each in _FACTORS if each <= confidence)
    return max(float(np.interp(log_ratio, log_ratios, _FACTORS[each])) for each in (below, above))


def check_level(confidence: object) -> float:
    """Returns a confidence, and refuses one for which the factors of `half_width` are not known."""
    return checks.number(
        confidence, "confidence", least=LEAST_CONFIDENCE, most=MOST_CONFIDENCE, example=0.95
    )


def student(degrees: float, confidence: float) -> float:
    """Returns the two-sided quantile of Student's t, or the normal one for infinite degrees."""
    from scipy.special import ndtri, stdtrit

    tail = (1 - checks.check_confidence(confidence)) / 2
    degrees = _degrees(degrees)
    return -float(ndtri(tail) if math.isinf(degrees) else stdtrit(degrees, tail))


def power(
    effect: float,
    standard_error: float,
    confidence: float = 0.95,
    degrees_of_freedom: float = math.inf,
) -> float:
    """The probability that the interval leaves out 0 when the truth is `effect`.

    It is P(|T| > t) for a noncentral t variable T with the centre effect/standard_error, which is
    normal if the degrees are infinite; 1 - confidence if the effect is 0.

    Source: docs/theory/experiments.md#degrees-of-freedom.

    Args:
        effect: The true effect, of either sign, in the outcome's unit.
        standard_error: The standard error, above 0, in the outcome's unit.
        confidence: Confidence of the interval.
        degrees_of_freedom: Degrees of freedom of the interval's quantile.

    Returns:
        A probability.

    Raises:
        InputError: Numbers outside their ranges.

    Example:
        >>> round(power(2.8, 1.0), 2), round(power(2.8, 1.0, degrees_of_freedom=10.0), 2)
        (0.8, 0.71)
    """
    error = _error(standard_error)
    size = abs(checks.number(effect, "effect", example=0.5))
    degrees = _degrees(degrees_of_freedom)
    centre = _FAR if size > _FAR * error else size / error
    return _power(centre, student(degrees, confidence), degrees)


def detectable(
    standard_error: float,
    power: float = 0.8,
    confidence: float = 0.95,
    degrees_of_freedom: float = math.inf,
) -> float:
    """The smallest effect whose interval leaves out 0 with a given probability; inverts `power`.

    Source: docs/theory/experiments.md#degrees-of-freedom.

    Args:
        standard_error: The standard error, above 0, in the outcome's unit.
        power: The wanted probability, above 1 - confidence and below 1.
        confidence: Confidence of the interval.
        degrees_of_freedom: Degrees of freedom of the interval's quantile.

    Returns:
        The effect, above 0, in the outcome's unit.

    Raises:
        InputError: Numbers outside their ranges, or a power that no effect at all has.

    Example:
        >>> round(detectable(1.0), 2), round(detectable(1.0, degrees_of_freedom=10.0), 2)
        (2.8, 3.11)
    """
    from scipy.optimize import brentq

    error = _error(standard_error)
    wanted = check_power(power)
    degrees = _degrees(degrees_of_freedom)
    without_effect = 1 - checks.check_confidence(confidence)
    limit = student(degrees, confidence)
    if wanted <= without_effect:
        raise InputError(
            f"a power of {wanted:.6g} is reached even if the effect is 0",
            f"give more than {without_effect:.6g}, for example 0.8",
        )
    # Effects are in standard errors here. The power rises with the effect.
    high = limit
    while _power(high, limit, degrees) < wanted:
        high *= 2
    effect = brentq(lambda tried: _power(tried, limit, degrees) - wanted, 0.0, high, xtol=1e-12)
    return error * float(effect)


def check_power(power: object) -> float:
    """Returns a power, and refuses anything that is no probability above 0 and below 1."""
    return checks.number(power, "power", above=0, most=_MOST_POWER, example=0.8)


def _power(centre: float, limit: float, degrees: float) -> float:
    """Returns P(|T| > limit) of a noncentral t with this centre, or of a normal variable.

    It is the mean over normal Z of P[S < |Z + centre|/limit], where S is the estimate of a standard
    deviation that is 1. SciPy's noncentral t is NaN for some arguments.
    """
    from scipy.integrate import quad
    from scipy.special import gammainc, ndtr

    if limit == 0:
        return 1.0
    if math.isinf(degrees):
        return float(ndtr(centre - limit) + ndtr(-centre - limit))

    def integrand(z: float) -> float:
        chance = gammainc(degrees / 2, degrees / 2 * ((z + centre) / limit) ** 2)
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * float(chance)

    # Pieces end at the integrand's kink, where Z + centre is 0, and on both sides of its steep
    # parts, which are narrow for many degrees and where Z + centre is the limit or minus it.
    near = limit * min(1.0, 7 / math.sqrt(degrees))
    turns = [-centre]
    for steep in (-limit - centre, limit - centre):
        turns += [steep - near, steep + near]
    inside = sorted({round(each, 6) for each in turns if -_REACH < each < _REACH})
    ends = [-_REACH, *inside, _REACH]
    probability = 0.0
    for low, high in itertools.pairwise(ends):
        piece, _ = quad(integrand, low, high, epsabs=1e-13, epsrel=1e-11)
        probability += piece
    return float(probability)


def _degrees(degrees: object) -> float:
    """Returns checked degrees of freedom; if quantiles are as good as normal, they are infinite."""
    found = checks.number(
        degrees, "degrees_of_freedom", least=_LEAST_DEGREES, infinite=True, example=10
    )
    return found if found <= _NORMAL_DEGREES else math.inf


def _error(standard_error: object) -> float:
    """Returns a checked standard error."""
    return checks.number(standard_error, "standard_error", least=1e-100, most=1e100, example=0.1)
