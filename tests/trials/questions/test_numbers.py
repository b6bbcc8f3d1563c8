"""Whole numbers of questions: exact losses of six units, exact sums, and what does not fit."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from shoal import documents
from shoal.errors import DocumentError, InputError
from shoal.privacy.noise import Simulated
from shoal.trials import Domain, Experiment, Questions
from shoal.trials.plan import Plan
from shoal.trials.questions import numbers
from shoal.trials.questions.numbers import BITS, TICKS, Choice, Numbers
from shoal.trials.questions.plan import QuestionsPlan

pytestmark = [
    pytest.mark.property,
    pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning"),
]

ARM, HOME = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
AGE = np.array([1.0, 1, 3, 4, 4, 6])
ASKED: dict[str, Callable[[], Questions]] = {
    "effect": lambda: Experiment(ARM, HOME).ask().effect(),
    "precision": lambda: Experiment(ARM, HOME).ask().effect(weights="precision"),
    "means": lambda: Experiment(ARM).ask().means(),
    "several": lambda: Experiment(ARM, HOME, {"age": AGE}).ask().effect().regression(["age"]),
    "three arms": lambda: Experiment(np.arange(6) % 3, control=0).ask().effect(),
    "groups": lambda: Experiment([0, 0, 0, 1, 1, 1], assigned=[0, 0, 1, 2, 3, 3]).ask().effect(),
}
# Moves of nine tenths of the range lose most where second moments have too little noise.
LEVELS = (0.0, 0.1, 1.0)


class Steps(Simulated):
    """Noise that is none: what is drawn are the steps themselves."""

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The steps, where noise would have the stated scale and nothing would be clamped."""
        assert lattice_bits == BITS
        assert draw in {0, 1}
        assert all(abs(each) < 2**60 for each in steps)
        return list(steps)


@cache
def plan_for(name: str, epsilon: Fraction | int) -> QuestionsPlan:
    """Of outcomes from 0 to 1."""
    return ASKED[name]().plan(Domain.bins(0, 1, 3), str(epsilon))


def most_lost(plan: QuestionsPlan) -> Fraction:
    """The most that any outcome moves all numbers together by, over the scale of their noise."""
    source, drawn = Steps(0), {}
    for outcomes in itertools.product(LEVELS, repeat=6):
        found = plan.respond(np.array(outcomes), source)
        drawn[outcomes] = np.array([*found.numbers, *found.moments], dtype=object)
    most = 0
    for outcomes, own in drawn.items():
        for unit, other in itertools.product(range(6), LEVELS):
            moved = drawn[(*outcomes[:unit], other, *outcomes[unit + 1 :])]
            most = max(most, int(np.abs(own - moved).sum()))
    return Fraction(most, 2**BITS)


@pytest.mark.parametrize("name", ASKED)
def test_no_outcome_loses_more_than_stated(name: str) -> None:
    """All outcomes of six units on three levels; the stated loss is attained to a millionth."""
    for epsilon in (Fraction(1, 10), Fraction(5)):
        plan = plan_for(name, epsilon)
        most = most_lost(plan)
        assert most <= plan.loss.epsilon <= epsilon
        assert most >= epsilon * (1 - Fraction(1, 10**6))


def test_second_moments_with_less_noise_lose_more() -> None:
    """A step of four fifths costs more than is stated, and such a plan is refused."""
    plan = plan_for("means", 1)
    less = plan.chosen.model_copy(update={"moment_step": plan.chosen.moment_step * 4 // 5})
    other = QuestionsPlan(plan.request, plan.design, less)
    assert most_lost(other) > plan.loss.epsilon * Fraction(101, 100)
    with pytest.raises(LookupError):
        _ = Numbers(plan.design.many, less).step
    with pytest.raises(DocumentError):
        Plan.from_bytes(
            documents.canonical_bytes({**plan.to_document(), "chosen": less.to_document()})
        )


def test_sums_are_exact_and_outcomes_outside_are_the_ends() -> None:
    """Against Python's whole numbers, at the ends of weights and ticks, with groups of kinds."""
    rng, one = np.random.default_rng(2), 1 << 40
    many = rng.integers(1, 4, 60)
    rows = rng.integers(-one, one + 1, (3, 60))
    rows[:, :4] = [one, -one, 1, -1]
    steps, groups = np.array([1 << 13, 3 << 13, 1 << 50]), rng.integers(0, 2, 60)
    chosen = Choice(rows=(rows + one).ravel(), sums=None, steps=steps, moment_step=1 << 37, by=())
    own, kind = Numbers(many, chosen), np.repeat(np.arange(60), many)
    ticks = rng.integers(-TICKS, TICKS, len(kind))
    found = own.draw(ticks, kind, groups, Steps(0))
    inside = [min(max(int(each), -TICKS // 2), TICKS // 2) for each in ticks]
    for row, step, told in zip(rows.tolist(), steps.tolist(), found.numbers, strict=True):
        assert told == sum(row[k] * t for k, t in zip(kind, inside, strict=True)) // step
    for group, told in enumerate(found.moments):
        square = sum(t * t for k, t in zip(kind, inside, strict=True) if groups[k] == group)
        assert told == square // (1 << 37)
    pairs = list(zip(rows.tolist(), steps.tolist(), strict=True))
    moved = [sum(-(-abs(row[k]) * TICKS // step) for row, step in pairs) for k in range(60)]
    assert own.most_steps == max(moved)
    # All units of the largest data set at one end, with the largest weight.
    most = np.array([numbers.MOST_UNITS * TICKS // 2])
    for weight in (one, -one, one - 1):
        assert numbers._product(np.array([weight]), most) == weight * int(most[0])


def test_answers_without_noise_are_those_of_the_data() -> None:
    """Values of every question to a millionth; recovered from what is released."""
    rng, n = np.random.default_rng(3), 240
    arm, home, age = np.arange(n) % 2, np.arange(n) // 2 % 3, rng.integers(10, 19, n)
    study = Experiment(arm, home, {"age": age})
    outcome = rng.uniform(0, 1, n)
    asked = study.ask().effect("cluster").means().regression(["arm", "age", "arm:age"])
    plan = asked.plan(Domain.bins(0, 1, 3), 1)
    found = plan.read(plan.respond(outcome[study.rows], Steps(0)), 0.95)
    x = np.column_stack([np.ones(n), arm, age, arm * age])
    wanted = [
        *(outcome[(home == c) & (arm == 1)].mean() - outcome[(home == c) & (arm == 0)].mean()
          for c in range(3)),
        *(outcome[arm == a].mean() for a in (0, 1)),
        *np.linalg.lstsq(x, outcome, rcond=None)[0],
    ]  # fmt: skip
    assert [each.value for each in found] == pytest.approx(wanted, abs=1e-5)
    free = plan.regression(plan.respond(outcome[study.rows], Steps(0)), ["age"], 0.95)
    fitted = np.linalg.lstsq(x[:, [0, 2]], outcome, rcond=None)[0]
    assert [each.value for each in free] == pytest.approx(fitted, abs=1e-5)


def test_noise_is_what_it_says() -> None:
    """Covariances of many draws: every number has noise of its own, of one scale in steps."""
    plan, runs = plan_for("several", Fraction(5)), 3000
    outcome = np.linspace(0, 1, 6)
    rows = np.concatenate([each.rows for each in plan.blocks])
    drawn = [plan.respond(outcome, Simulated(seed)).numbers for seed in range(runs)]
    recovered = plan.numbers.recover(rows)
    values = np.array(drawn, dtype=float) @ recovered.T / TICKS
    wanted, seen = numbers.noise(recovered, 1.0), np.cov(values.T)
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    # Fourth moments of Laplace variables: a deviation of sqrt(5/runs) at most.
    assert (np.abs(seen - wanted) < 6.2 * scale * np.sqrt(5 / runs)).all()


BAD: dict[str, Callable[[], Any]] = {
    "too small a loss": lambda: plan_for("means", Fraction(1, 10**8)),
    "too large a loss": lambda: plan_for("effect", 700_000),
    "do not fit 60 bits": lambda: (
        Numbers(
            np.ones(2, int),
            Choice(
                rows=np.array([2 << 40, 0] * 2),
                sums=None,
                steps=np.ones(2, int),
                moment_step=0,
                by=(),
            ),
        ).most_steps
    ),
    "too many units": lambda: numbers.fitted_sums(
        np.array([0, 1]), np.array([2**40, 2**40]), Fraction(1000), ()
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name: str) -> None:
    """No wrapped sums, no steps of nothing."""
    with pytest.raises(InputError):
        BAD[name]()


def test_weights_that_leave_64_bits_are_refused() -> None:
    """In a plan's document, where products with ticks would wrap; and sums of no kind."""
    document = plan_for("means", 1).to_document()
    rows = documents.unpack_integers(document["chosen"]["rows"], "rows") + 16 * 2**40
    document["chosen"]["rows"] = documents.pack_integers(rows)
    with pytest.raises(DocumentError):
        Plan.from_bytes(documents.canonical_bytes(document))
    document = plan_for("groups", 1).to_document()
    document["chosen"]["sums"] = documents.pack_integers(np.zeros(4, dtype=int))
    with pytest.raises(DocumentError):
        Plan.from_bytes(documents.canonical_bytes(document))
