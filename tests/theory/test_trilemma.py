"""The lower bound: its parts against other ways to them, and against what estimators attain."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats
from shoal_studies import regimes

from shoal.errors import InputError
from shoal.theory import paths
from shoal.theory.problem import Amount, Moment, Setting
from shoal.theory.trilemma import distance_to_bound, trilemma

POWERS = st.floats(-6, 0).map(lambda power: 10.0**power)
EPSILONS = st.floats(-3, 1).map(lambda power: 10.0**power)
DELTAS = st.one_of(st.just(0.0), st.floats(-12, -0.5).map(lambda power: 10.0**power))
ORDERS = st.one_of(st.just(2.0), st.floats(2, 12))
USERS = st.integers(1, 10**7)


def leaky_response(epsilon: float, delta: float) -> NDArray[np.float64]:
    """Two distributions on four outcomes: 0 or 1 with chance delta, else randomised response."""
    e = math.exp(epsilon)
    keep, swap = (1 - delta) * e / (e + 1), (1 - delta) / (e + 1)
    return np.array([[delta, keep, swap, 0.0], [0.0, swap, keep, delta]])


def explained(distributions: NDArray[np.float64], chance: float) -> float:
    """Largest squared correlation of a bit with a function of the outcome."""
    zero, one = distributions
    mixed = (1 - chance) * zero + chance * one
    seen = mixed > 0
    return float(chance * (1 - chance) * ((one - zero)[seen] ** 2 / mixed[seen]).sum())


@given(epsilon=EPSILONS, delta=DELTAS, chance=st.floats(1e-6, 0.5))
def test_leaky_randomised_response_attains_the_influence(
    epsilon: float, delta: float, chance: float
) -> None:
    """The closed form is what randomised response with an open door explains."""
    spread = np.array([chance * (1 - chance)])
    found = paths.influence(epsilon, delta, spread)[0]
    assert found == pytest.approx(explained(leaky_response(epsilon, delta), chance), rel=1e-9)


def test_three_laws_attain_the_triple_distance() -> None:
    """For e^epsilon up to 2 and beyond, by the outcomes of the proof; no vertex has more."""
    for epsilon in (0.05, 0.5, math.log(2), 1.0, 3.0):
        e = math.exp(epsilon)
        corners = np.array([(e, e), (e, 1), (1, e), (1, 1 / e), (1 / e, 1), (1 / e, 1 / e)])
        # Distributions over the corners with both means 1: a linear program, by its vertices.
        best = 0.0
        for three in itertools.combinations(range(6), 3):
            system = np.vstack([np.ones(3), corners[list(three)].T])
            if abs(np.linalg.det(system)) < 1e-12:
                continue
            mass = np.linalg.solve(system, np.ones(3))
            if (mass >= -1e-12).all():
                gap = corners[list(three), 0] - corners[list(three), 1]
                best = max(best, float((mass * gap**2).sum()))
        # Mirrored halves: a vertex of the program need not be symmetric, its mirror image adds up.
        assert paths.triple_distance(epsilon) >= best - 1e-9
        few = e <= 2
        a = 1 / (2 * (e + 1)) if few else 1 / (e + 2)
        other = (0.5 - a) * (1 - 1 / e) ** 2 if few else 0.0
        assert paths.triple_distance(epsilon) == pytest.approx(2 * (a * (e - 1) ** 2 + other))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0])
def test_one_user_nearly_attains_the_resistance(epsilon: float) -> None:
    """For n = 1 and a small b, mechanisms reach 97 % of it: no smaller one holds."""
    at, e = np.array([1e-3]), math.exp(epsilon)
    if e <= 2:
        a, d = 1 / (2 * (e + 1)), e / (2 * (e + 1))
        distributions = np.array([[a, a * e, d / e, d], [a, a, d, d], [a * e, a, d, d / e]])
        gap = np.array([e - 1, 1 - e, 1 - 1 / e, 1 / e - 1])
    else:
        a = 1 / (e + 2)
        distributions = np.array(
            [[a, a * e, 1 / (e + 2)], [a, a, e / (e + 2)], [a * e, a, 1 / (e + 2)]]
        )
        gap = np.array([1.0, -1.0, 0.0])
    assert distributions.sum(axis=1) == pytest.approx(1)
    s, most = np.linspace(-1, 1, 51), at[0]
    chances = np.stack([most * (1 - s) / 2, np.full(51, 1 - most), most * (1 + s) / 2], axis=1)
    mean, square = chances @ distributions @ gap, chances @ distributions @ gap**2
    reached = (mean[-1] - mean[0]) / 2 / np.sqrt(square - mean**2).max()
    stated = paths.triple_resistance(1, epsilon, 0.0, at)[0]
    assert 0.97 * stated <= reached <= stated * (1 + 1e-9)


@given(n=st.integers(1, 10**5), epsilon=EPSILONS, delta=DELTAS, chance=POWERS)
def test_the_upper_sum_is_above_the_integral_and_close(
    n: int, epsilon: float, delta: float, chance: float
) -> None:
    """Against quadrature, within 1 %."""
    top = min(chance, 0.5)

    def inside(angle: float) -> float:
        share = paths.influence(epsilon, delta, np.array([math.sin(2 * angle) ** 2 / 4]))[0]
        return 2 * min(n * math.sqrt(share), math.sqrt(n))

    end = math.asin(math.sqrt(top))
    exact = np.sum(
        [integrate.quad(inside, end * k / 8, end * (k + 1) / 8, limit=200)[0] for k in range(8)]
    )
    found = paths.resistance(n, epsilon, delta, np.array([top]))[0]
    assert exact * (1 - 1e-7) <= found <= exact * 1.01


@given(order=ORDERS, part=st.floats(1e-6, 1))
def test_both_paths_stay_within_the_moment(order: float, part: float) -> None:
    """Every distribution of a path has a central moment of at most 1 and a mean in the width."""
    b = 0.5 * part
    v = paths.half_range(order, 1e9, np.array([b]))[0] / b
    p = np.linspace(0, b, 400)
    assert ((p * (v - p * v) ** order + (1 - p) * (p * v) ** order) <= 1 + 1e-9).all()
    b = paths.most_chance(order) * part
    v = paths.triple_range(order, 1e9, np.array([b]))[0] / b
    s = np.linspace(-1, 1, 400)
    mean = v * b * s
    moment = (
        b * (1 + s) / 2 * abs(v - mean) ** order
        + b * (1 - s) / 2 * abs(-v - mean) ** order
        + (1 - b) * abs(mean) ** order
    )
    assert (moment <= 1 + 1e-9).all()
    for width in (0.1, 1.0):
        assert paths.half_range(order, width, np.array([b]))[0] <= width / 2
        assert paths.triple_range(order, width, np.array([b]))[0] <= width / 2


@given(
    n=USERS, epsilon=EPSILONS, delta=DELTAS, bias=POWERS, order=ORDERS, width=st.floats(0.01, 100)
)
def test_no_certificate_is_below_the_bound(
    n: int, epsilon: float, delta: float, bias: float, order: float, width: float
) -> None:
    """Clipped, combined and sampled means, and guessing, err at least as much."""
    found = trilemma(n, epsilon, delta, bias, (order, 1.0), width=width)
    best = regimes.regime(n, epsilon, delta, bias, (order, 1.0), width=width)
    assert found.rmse <= min(best.errors.values())
    assert found.rmse == found.terms[0].rmse == max(term.rmse for term in found.terms)
    assert distance_to_bound(best.rmse, found) >= 1
    # Without a promise, a mean shrunk to the middle, without any privacy; and the middle itself.
    free = max(t.rmse for t in found.terms if t.source.startswith("statistics"))
    keep = (width**2 / 4) / (width**2 / 4 + 1 / n)
    assert free <= math.sqrt(keep**2 / n + (1 - keep) ** 2 * width**2 / 4)
    anyhow = trilemma(n, epsilon, delta, math.inf, (order, 1.0), width=width)
    assert anyhow.rmse <= width / 2
    assert anyhow.rmse <= found.rmse


def test_unbiased_estimators_keep_the_bound() -> None:
    """What delta buys, at bias 0, on a grid."""
    grid = itertools.product((1, 10, 10**3, 10**5), (0.0, 0.01, 1.0, 5.0), (1e-9, 1e-4, 0.3, 0.99))
    for (n, epsilon, delta), order in itertools.product(grid, (2.0, 3.0, 8.0)):
        found = trilemma(n, epsilon, delta, 0.0, (order, 1.0))
        best = regimes.regime(n, epsilon, delta, 0.0, (order, 1.0))
        assert 0 < found.rmse <= best.rmse < math.inf


@pytest.mark.parametrize(
    ("n", "epsilon", "delta", "bias", "moment", "width"),
    [
        (0, 1, 0, 0.1, (2, 1.0), 1.0),
        (10, -1, 0, 0.1, (2, 1.0), 1.0),
        (10, math.nan, 0, 0.1, (2, 1.0), 1.0),
        (10, "much", 0, 0.1, (2, 1.0), 1.0),
        (10, 0, 0, 0.1, (2, 1.0), 1.0),
        (10, 1, 1, 0.1, (2, 1.0), 1.0),
        (10, 1, 0, -0.1, (2, 1.0), 1.0),
        (10, 1, 0, math.nan, (2, 1.0), 1.0),
        (10, 1, 0, 0.1, (1.5, 1.0), 1.0),
        (10, 1, 0, 0.1, (2, 0.0), 1.0),
        (10, 1, 0, 0.1, (2, 1.0), 0.0),
    ],
)
def test_what_is_out_of_range_is_refused(
    n: int, epsilon: Amount, delta: Amount, bias: float, moment: Moment, width: float
) -> None:
    """Every number is checked, by the regimes too."""
    with pytest.raises(InputError):
        trilemma(n, epsilon, delta, bias, moment, width=width)
    with pytest.raises(InputError):
        regimes.regime(n, epsilon, delta, bias, moment, width=width)


def test_impossible_is_infinite_and_has_no_distance() -> None:
    """Unbiased without delta: no estimator at all; a distance to it is refused."""
    found = trilemma(10, 1, 0, 0, (2, 1.0))
    assert found.rmse == found.price == math.inf
    with pytest.raises(InputError, match="allow some bias or delta"):
        distance_to_bound(1.0, found)
    assert "no RMSE below inf" in str(found)
    assert str(found).endswith("compares the certified errors of the estimators")


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 50.0, 1e3, 1e9])
def test_extreme_budgets(epsilon: float) -> None:
    """Nothing overflows; with a huge epsilon statistics remain, with a tiny one guessing."""
    found = trilemma(1000, epsilon, 0, math.inf, (2, 1.0))
    expected = 0.5 if epsilon < 1e-6 else paths.normal_bound(found.setting)
    assert found.rmse == pytest.approx(expected, rel=1e-3)


def bayes_risk(
    prior: NDArray[np.float64], truth: NDArray[np.float64], distributions: NDArray[np.float64]
) -> float:
    """Mean squared error of the posterior mean; distributions are outcomes by parameters."""
    joint = distributions * prior / prior.sum()
    total = joint.sum(axis=1)
    seen = total > 0
    centre = (joint @ truth)[seen] / total[seen]
    return float((joint[seen] * (truth - centre[:, None]) ** 2).sum())


@pytest.mark.parametrize("n", [1, 5, 50])
@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
def test_statistics_against_exact_bayes_risks(n: int, width: float) -> None:
    """Van Trees and Hodges-Lehmann are below the Bayes risk of some prior, by quadrature."""
    setting = Setting.of(n, 1, 0, 0, (2, 1.0), width)
    half = width / 2
    truth = np.linspace(-half, half, 401)
    prior = np.cos(math.pi * truth / width) ** 2
    seen = np.linspace(-half - 9 / math.sqrt(n), half + 9 / math.sqrt(n), 1001)
    distributions = stats.norm.pdf(seen[:, None], truth, 1 / math.sqrt(n)) * (seen[1] - seen[0])
    assert paths.normal_bound(setting) ** 2 <= bayes_risk(prior, truth, distributions) * (1 + 1e-4)
    # The largest allowed step of two points at every h.
    risks = []
    for near in np.geomspace(1e-2, 0.499, 40):
        chance = np.linspace(0.5 - near, 0.5 + near, 801)
        step = min(2.0, width / (2 * near))
        prior = np.cos(math.pi * (chance - 0.5) / (2 * near)) ** 2
        distributions = np.asarray(stats.binom.pmf(np.arange(n + 1)[:, None], n, chance))
        risks.append(bayes_risk(prior, step * chance, distributions))
    assert paths.coin_bound(setting) ** 2 <= max(risks) * (1 + 1e-3)
    chance = np.linspace(0, 1, 4001)
    prior = stats.beta.pdf(chance, math.sqrt(n) / 2 + 1e-9, math.sqrt(n) / 2 + 1e-9)
    prior[[0, -1]] = 0
    distributions = np.asarray(stats.binom.pmf(np.arange(n + 1)[:, None], n, chance))
    risk = bayes_risk(prior, min(width, 2.0) * chance, distributions)
    assert paths.bit_bound(setting) ** 2 == pytest.approx(risk, rel=0.05)
