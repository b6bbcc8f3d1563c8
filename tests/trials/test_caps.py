"""What caps leave and cost, against integrals and simulated amounts; nothing is read."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm

from shoal import trials
from shoal.errors import InputError

GUESS: dict[str, Any] = {"share": 0.1, "median": 40, "mean": 90, "epsilon": 1}


def test_moments_of_capped_amounts_are_integrals() -> None:
    """Of the lognormal law with this median and mean; without noise intervals are those of n."""
    law = lognorm(math.sqrt(2 * math.log(90 / 40)), scale=40)
    assert law.mean() == pytest.approx(90)
    for each in trials.caps([[3000, 9000]], **GUESS).rows[:6]:
        moments = []
        for power in (1, 2):
            places = law.ppf(np.linspace(0, 1, 40)[1:-1])
            inside = quad(
                lambda x, k=power: x**k * law.pdf(x),
                0,
                each.cap,
                points=places[places < each.cap],
                limit=200,
            )[0]
            moments.append(0.1 * (inside + each.cap**power * law.sf(each.cap)))
        assert each.of_mean == pytest.approx(moments[0] / 9, rel=1e-6)
        variance = (moments[1] - moments[0] ** 2) * (1 / 3000 + 1 / 9000)
        assert each.plain_half_width == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-5)
        assert each.half_width > each.plain_half_width


def test_a_rise_of_amounts_is_found_as_stated() -> None:
    """In 400 simulated trials with the best cap, with noise: 80% of rises of so much."""
    best = trials.caps(20_000, **GUESS).best
    rng = np.random.default_rng(4)
    spread = math.sqrt(2 * math.log(90 / 40))
    seen = 0
    for _ in range(400):
        sides = []
        for rise in (1.0, 1 + best.larger_amounts):
            bought = rng.random(10_000) < 0.1
            amounts = np.where(bought, rise * rng.lognormal(math.log(40), spread, 10_000), 0)
            sides.append(np.minimum(amounts, best.cap).mean())
        noise = best.cap / 10_000 * (rng.laplace() + rng.laplace())
        seen += sides[1] - sides[0] + noise > best.half_width
    assert seen / 400 == pytest.approx(0.8, abs=0.08)


def test_the_best_cap_is_shown_first() -> None:
    """With fewer units a lower cap is best; the table has all."""
    many, few = (trials.caps(n, **GUESS) for n in (400_000, 1000))
    assert few.best.cap < many.best.cap
    first = str(many).splitlines()[2].split()[0]
    assert float(first) == many.best.cap
    assert many.to_pandas()["of_mean"].is_monotonic_increasing


@pytest.mark.parametrize("wrong", [{"mean": 30}, {"share": 0}, {"epsilon": 0}])
def test_what_is_no_guess(wrong: dict[str, Any]) -> None:
    """Refused by name."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        trials.caps(1000, **{**GUESS, **wrong})
