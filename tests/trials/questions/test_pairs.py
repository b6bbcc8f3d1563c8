"""Numbers of two outcomes: exact losses of users with up to two rows, and exact sums."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.trials import Domain, Experiment
from shoal.trials.columns_of_a_file import read
from shoal.trials.questions.numbers import BITS, TICKS
from shoal.trials.questions.pairs import Pair, fair_share
from shoal.trials.questions.ratios import RatiosPlan
from tests.trials.questions.test_numbers import Steps

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
DOMAINS = Domain.counts(0, 2), Domain.counts(0, 2)
# Every set of up to two rows of three values that a user may have; a row may lack its value.
ROWS = [
    rows
    for many in range(3)
    for rows in itertools.combinations_with_replacement((0.0, 1.0, 2.0), many)
]


def outcomes_of_users() -> list[tuple[float, float]]:
    """Numerator and denominator of every user, as they are read from a log."""
    who = [at for at, rows in enumerate(ROWS) for _ in rows or (None,)]
    values = [value for rows in ROWS for value in rows or (None,)]
    log = pa.table({"who": who, "arm": [at % 2 for at in who], "value": values})
    _, (x, y) = read(
        log, outcome=("value", "rows"), arm="arm", user="who", domain=DOMAINS, control=0
    )
    return [*zip(x.tolist(), y.tolist(), strict=True)]


def plan_for(epsilon: Any, expected: tuple[float, float], by: bool = False) -> RatiosPlan:
    """Of six users in two arms, with subgroups that overlap with arms if asked."""
    study = Experiment([0, 0, 0, 1, 1, 1], covariates={"sex": [0, 0, 1, 0, 1, 1]} if by else None)
    asked = study.ask().effect().effect(by="sex") if by else study.ask().effect()
    found = asked.plan(DOMAINS, epsilon, expected=expected)
    assert isinstance(found, RatiosPlan)
    return found


def most_lost(plan: RatiosPlan, pair: Pair) -> Fraction:
    """The most that any move of any user moves all numbers by, over the scale of their noise."""
    others = np.array([2.0, 0, 1, 2, 0, 1]), np.array([1.0, 2, 0, 1, 2, 2])
    object.__setattr__(plan, "numbers", pair)
    most = 0
    moves = {*outcomes_of_users(), *itertools.product((0.0, 0.2, 1.0, 2.0), repeat=2)}
    for unit in (0, 4):
        drawn = []
        for own in moves:
            both = []
            for column, value in zip(others, own, strict=True):
                changed = column.copy()
                changed[unit] = value
                both.append(changed)
            found = plan.respond(both, Steps(0))
            drawn.append(np.array([*found.first, *found.second, *found.moments], dtype=object))
        most = max(
            int(np.abs(one - other).sum()) for one, other in itertools.combinations(drawn, 2)
        )
    return Fraction(most, 2**BITS)


@pytest.mark.parametrize(
    ("epsilon", "expected", "by"),
    [("1/10", (1.0, 1.0), False), (4, (0.1, 1.5), False), (1, (2.0, 0.5), True)],
)
def test_no_rows_of_a_user_lose_more_than_stated(
    epsilon: Any, expected: tuple[float, float], by: bool
) -> None:
    """The stated loss is attained to a millionth, unless subgroups share numbers."""
    plan = plan_for(epsilon, expected, by)
    most = most_lost(plan, plan.numbers)
    assert most <= plan.loss.epsilon <= Fraction(epsilon)
    if not by:
        assert most >= Fraction(epsilon) * (1 - Fraction(1, 10**6))


class Less(Pair):
    """Four fifths of the noise on one second moment."""

    moment = 2

    @property
    def moment_steps(self) -> Any:  # type: ignore[override]
        """A step of four fifths."""
        steps = [*Pair.moment_steps.func(self)]
        steps[self.moment] = steps[self.moment] * 4 // 5
        return tuple(steps)


def test_second_moments_with_less_noise_lose_more() -> None:
    """Each of the three moments needs its noise."""
    plan = plan_for(1, (1.0, 1.0))
    for Less.moment in range(3):
        assert most_lost(plan, Less(plan.design.many, plan.chosen)) > Fraction(10009, 10000)


def test_sums_are_exact() -> None:
    """Against Python's whole numbers, with groups of kinds, at the ends of ticks."""
    study = Experiment([0, 1] * 40, covariates={"sex": [0, 0, 1, 1] * 20})
    plan = study.ask().effect(by="sex").plan(DOMAINS, 1)
    assert isinstance(plan, RatiosPlan)
    rng = np.random.default_rng(1)
    x, y = rng.integers(-TICKS, TICKS, (2, 80))
    pair = plan.numbers
    kind = plan.design.kind_of_unit
    found = pair.draw((x, y), kind, plan.groups, Steps(0))
    half = TICKS // 2
    x, y = ([min(max(int(each), -half), half) for each in column] for column in (x, y))
    a, b = pair.most_steps
    for group in range(int(plan.groups.max()) + 1):
        inside = [(p, q) for p, q, k in zip(x, y, kind, strict=True) if plan.groups[k] == group]
        plain = [
            sum(p * p for p, _ in inside),
            sum(q * q for _, q in inside),
            sum((a * p - b * q) ** 2 for p, q in inside),
        ]
        wanted = [each // step for each, step in zip(plain, pair.moment_steps, strict=True)]
        assert [*found.moments[3 * group : 3 * group + 3]] == wanted


def test_the_share_of_the_loss_has_the_least_noise() -> None:
    """Of x - r y, for widths and ratios of any size; no outcome is left with next to nothing."""
    for widths, ratio in (((10.0, 49.0), 0.1), ((1.0, 1.0), 1.0), ((3.0, 9.0), 0.4)):
        shares = np.linspace(0.1, 0.9, 8001)
        noise = (widths[0] / shares) ** 2 + (ratio * widths[1] / (1 - shares)) ** 2
        assert fair_share(widths, ratio) == pytest.approx(shares[noise.argmin()], abs=2e-4)
        for factor in (3, 1 / 3):
            wrong = fair_share(widths, ratio * factor)
            found = (widths[0] / wrong) ** 2 + (ratio * widths[1] / (1 - wrong)) ** 2
            assert found <= 1.22**2 * noise.min()
    assert fair_share((1.0, 1.0), 0.0) == 0.9
