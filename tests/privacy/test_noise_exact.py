"""The noise without statistics: OpenDP's own privacy maps, fair bits, every number its own draw."""

from collections.abc import Callable
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

from shoal.cells.estimates.draw import draw
from shoal.errors import InputError
from shoal.privacy import noise
from shoal.privacy.noise import OperatingSystem, Simulated, source_of
from tests.support import flights
from tests.support.tape import Tape


def made_by(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Every measurement that one of OpenDP's constructors gives from now on."""
    found: list[Any] = []
    original: Callable[..., Any] = getattr(dp.m, name)

    def spy(*arguments: object, **options: object) -> object:
        found.append(original(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(dp.m, name, spy)
    return found


@pytest.mark.parametrize("bits", [0, 7, 20, 45])
def test_opendp_itself_states_the_accounted_loss(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its privacy maps say 2^-j for a step and 1/(2 4^j) for a squared step, in chunks too."""
    monkeypatch.setattr(noise, "_CHUNK", 20)
    laplace = made_by(monkeypatch, "make_laplace")
    gaussian = made_by(monkeypatch, "make_gaussian")
    OperatingSystem().add_laplace([0] * 30, bits)
    OperatingSystem().add_gaussian([0] * 30, bits)
    assert [each.map(1) for each in laplace] == [2.0**-bits]
    assert [each.map(1) for each in gaussian] == [0.5 * 4.0**-bits]


@pytest.mark.parametrize("scale", [0.75, 3.0, 2.0**20])
def test_opendp_itself_states_the_loss_of_a_selection(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its privacy map says 2/scale for scores that move by 1."""
    made = made_by(monkeypatch, "make_noisy_max")
    OperatingSystem().select(np.array([0, 5, 1]), scale, draw=0)
    assert [each.map(1) for each in made] == [pytest.approx(2 / scale, rel=1e-15)]


def test_fair_words_are_new_in_every_call_and_in_every_block() -> None:
    """Words of two calls, and those a million places apart, hardly ever agree."""
    source, block = OperatingSystem(), 1 << 20
    words = source.bits(2 * block + 8, draw=0)
    assert (words[:block] == words[block : 2 * block]).sum() == 0
    assert (words[:8] == words[2 * block :]).sum() == 0
    assert (words[:1000] == source.bits(1000, draw=0)).sum() == 0
    assert len(np.unique(words[:1000])) == 1000


def test_every_bit_of_a_fair_word_is_fair() -> None:
    """Each of 64 bits is set in half of the words, within 7 standard errors."""
    words = OperatingSystem().bits(100_000, draw=0)
    for bit in range(64):
        often = float(((words >> np.uint64(bit)) & np.uint64(1)).mean())
        assert abs(often - 0.5) < 7 * 0.5 / 100_000**0.5


PLANS: list[dict[str, Any]] = [
    {"statistics": ["mean"]},
    {"statistics": ["mean", "variance"]},
    {"statistics": ["mean", "variance", "share_above(400)"], "method": "equalised"},
    {"statistics": ["mean", "variance"], "method": "clip_user"},
    {"method": "levy"},
    {"method": "user_clipped"},
]


@pytest.mark.parametrize("wanted", PLANS, ids=str)
def test_every_number_has_a_draw_of_its_own(wanted: dict[str, Any]) -> None:
    """One draw of the planned kind and scale; nothing is changed or used twice."""
    records = flights.records()
    plan = flights.plan(uninformative="keep", **wanted)
    source, others = Tape(), [each.measure for each in plan.statistics if each.measure]
    drawn = draw(plan, records.aggregate(others)[1], source)
    [asked] = [each for each in source.asked if each.kind != "select"]
    assert asked.kind == ("gaussian" if plan.gaussian else "laplace")
    assert asked.scale == plan.decision.bits
    assert len(asked.numbers) == len(plan.statistics) * len(plan.planned)
    assert drawn.steps == [x + 3 * at for at, x in enumerate(asked.numbers)]


def test_only_a_marked_simulation_is_not_the_operating_systems_noise() -> None:
    """Without a request noise is real; a simulation says so and is never recorded."""
    assert isinstance(source_of(None), OperatingSystem)
    assert isinstance(source_of(None, recorded=True), OperatingSystem)
    assert source_of(Simulated(0)) == Simulated(0)
    for seed in (0, 1, 10**9):
        with pytest.raises(InputError, match="ledger"):
            source_of(Simulated(seed), recorded=True)
