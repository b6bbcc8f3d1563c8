"""Two rounds of users' vectors: reach and loss of both, centres of cells, values, documents."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import shoal
from shoal.cells.estimates import draw as drawing
from shoal.cells.estimates.draw import exact_numbers, first_round
from shoal.cells.estimates.posterior import values_of
from shoal.cells.mechanisms.ranges import USER
from tests.cells.mechanisms.test_user_vectors import (
    BITS,
    CASES,
    FULL,
    data_sets,
    moves,
    plan_of,
    recorded,
)
from tests.support import draws, methods
from tests.support.gaussian_vectors import always_gaussian
from tests.support.tape import Tape


def _plan(counts: dict[tuple[str, int], int], epsilon: object, delta: object) -> shoal.Plan:
    return plan_of(counts, epsilon, delta, rounds=2)


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("counts", CASES.values(), ids=CASES)
def test_no_user_moves_the_second_round_by_more_than_accounted(
    counts: dict[tuple[str, int], int], delta: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All data sets, given what the first round released: a ball and a rank, again."""
    plan, power = _plan(counts, 60, delta), 2 if delta else 1
    assert plan.gaussian == bool(delta)
    top = 1 << (BITS + 10)
    centres = np.linspace(0, top, len(plan.planned) + 2).astype(np.int64)[1:-1]
    monkeypatch.setattr(drawing, "_centres", lambda _plan, _sums, _noise: centres)
    width, widest = (2 * int(plan.parameters["ball"][0])) ** power, 0
    for step in (3, 20) if FULL else (20,):
        shown = [recorded(plan, each, (0, 3, step)) for each in data_sets(plan)]
        scores, steps = moves(plan, shown, power)
        assert scores <= USER
        widest = max(widest, steps)
    assert 0.98 * width <= widest <= width


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("counts", CASES.values(), ids=CASES)
def test_the_first_round_is_a_round_of_its_own_ball(
    counts: dict[tuple[str, int], int], delta: object
) -> None:
    """All data sets: what is hidden by the first noise moves by its ball's diameter."""
    plan, power = _plan(counts, 60, delta), 2 if delta else 1
    first = first_round(plan)
    ball = int(plan.parameters["first_ball"][0])
    assert first.parameters["ball"][0] == ball
    shown = []
    for found in data_sets(plan):
        recorder = Tape(places=(0, 3), rise=0)
        recorder.add_laplace(exact_numbers(first, found, recorder)[0], 1)
        shown.append(recorder)
    scores, steps = moves(plan, shown, power)
    assert scores <= USER
    assert steps <= (2 * ball) ** power


@pytest.mark.parametrize("name", ["user_clipped-twice", "user_clipped-gaussian-twice"])
def test_centres_follow_from_what_the_first_round_gave_away(name: str) -> None:
    """Whatever the values are, centres are those of the noisy numbers and selections."""
    table = methods.tied()
    with always_gaussian():
        plan = methods.plan(table, methods.METHODS[name])
    found = methods.aggregate(plan, table)
    other = replace(found, centred=-found.centred)
    first = first_round(plan)
    one = Tape()
    centres = drawing._centres(first, found, one)
    two = Tape(answers=one.given)
    assert np.array_equal(drawing._centres(first, other, two), centres)
    assert one.asked[-1].numbers != two.asked[-1].numbers
    assert (one.asked[-1].kind == "gaussian") == plan.gaussian
    # Other answers lead to other centres.
    shifted = [[each + (3 << plan.decision.bits) for each in one.given[0]]]
    assert not np.array_equal(drawing._centres(first, found, Tape(answers=shifted)), centres)


def test_a_posterior_that_fails_leaves_the_numbers_of_the_first_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing raises on a private number, as a draw that fails is not charged."""

    def fails(*_: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(drawing, "values_of", fails)
    table = methods.tied()
    plan = methods.plan(table, methods.METHODS["user_clipped-twice"])
    first = first_round(plan)
    tape = Tape()
    centres = drawing._centres(first, methods.aggregate(plan, table), tape)
    top = 1 << (plan.lattice.bits + 10)
    assert ((centres >= 0) & (centres <= top)).all()
    assert len(set(centres.tolist())) == len(plan.planned)


@pytest.mark.parametrize("epsilon", [26, 60, 400])
def test_the_parts_of_the_loss_add_up(epsilon: int) -> None:
    """Three selections and the diameters of both balls; squares of them if Gaussian."""
    plan = _plan(CASES["two cells"], epsilon, 0)
    selections = sum(Fraction(2 * USER) / Fraction(each) for each in plan.decision.selection_scale)
    assert len(plan.decision.selection_scale) == 3
    balls = [2 * int(plan.parameters[name][0]) for name in ("ball", "first_ball")]
    noise = Fraction(sum(balls), 2**plan.decision.bits)
    assert selections + noise <= plan.exact_epsilon <= epsilon
    assert float(plan.exact_epsilon) >= epsilon * (1 - 1e-5)
    normal = _plan(CASES["two cells"], epsilon, "1e-6")
    assert normal.gaussian
    balls = [2 * int(normal.parameters[name][0]) for name in ("ball", "first_ball")]
    squares = Fraction(sum(each**2 for each in balls), 2 * 4**normal.decision.bits)
    assert normal.losses.noise_rho == squares
    # What a lattice adds to delta counts a user's numbers of both rounds.
    assert normal.cost.most_numbers == 2 * 2
    assert epsilon * (1 - 1e-4) <= float(normal.exact_epsilon) <= epsilon


def _apart() -> tuple[shoal.Records, NDArray[np.float64]]:
    """400 users in 24 cells that are far apart; the cells' means."""
    rng = np.random.default_rng(5)
    user, cell = np.repeat(np.arange(400), 6), rng.integers(0, 24, 2400)
    place = rng.uniform(100, 900, 24)
    value = np.clip(place[cell] + rng.normal(0, 10, 400)[user] + rng.normal(0, 5, 2400), 0, 1000)
    table = pa.table({"who": pa.array(user), "at": pa.array(cell), "value": pa.array(value)})
    records = shoal.Records(
        table, user="who", value="value", bounds=(0, 1000), by="at", counts="public"
    )
    return records, np.bincount(cell, value) / np.bincount(cell)


@pytest.mark.parametrize("delta", ["0", "1e-9"])
def test_cells_far_apart_are_nearer_after_two_rounds(delta: str) -> None:
    """Errors of 12 releases fall by a third, and intervals still cover."""
    records, truth = _apart()
    counts, sums = records.aggregate()
    asked: dict[str, Any] = {"bounds": (0, 1000), "epsilon": 6, "delta": delta}
    error, covered = [], []
    for rounds in (1, 2):
        plan = shoal.plan(counts, method="user_clipped", settings={"rounds": rounds}, **asked)
        found = [values_of(draws.drawn(plan, sums, seed), 0.95) for seed in range(12)]
        error.append(np.mean([np.abs(each.value - truth) for each in found]))
        covered.append(np.mean([(each.low <= truth) & (truth <= each.high) for each in found]))
    assert error[1] < 0.67 * error[0]
    assert covered[1] >= 0.94


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_few_users_have_one_round(tmp_path: Path, delta: str) -> None:
    """With nothing to select there is nothing to go around; none is charged."""
    records = _few()
    asked: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "method": "user_clipped"}
    with always_gaussian():
        one, two = (
            shoal.plan(records.counts(), settings={"rounds": rounds}, delta=delta, **asked)
            for rounds in (1, 2)
        )
        two.save(tmp_path / "plan.json")
        two = shoal.Plan.load(tmp_path / "plan.json")
    assert two.rounds == 1
    assert len(two.decision.selection_scale) == 0
    assert two.exact_epsilon == one.exact_epsilon
    told = {name: each.tolist() for name, each in two.parameters.items()}
    assert told["first_ball"] == told["first_clipped"] == [0]
    drawn = [each.release(records, noise=shoal.Simulated(1)).numbers for each in (one, two)]
    assert drawn[0].steps == drawn[1].steps


def _few() -> shoal.Records:
    at = np.arange(9)
    columns = {"who": pa.array(at), "at": pa.array(at % 3), "value": pa.array(at / 10)}
    table = pa.table(columns)
    return shoal.Records(table, user="who", value="value", bounds=(0, 1), by="at", counts="public")


def test_rounds_draw_noise_of_their_own() -> None:
    """With one seed the vectors of both rounds are not alike."""
    noise, steps = shoal.Simulated(3), [2**30] * 50
    for add in (noise.add_laplace, noise.add_gaussian):
        one, other = (np.array(add(steps, 20, draw)) - 2**30 for draw in (0, 1))
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / math.sqrt(50)
