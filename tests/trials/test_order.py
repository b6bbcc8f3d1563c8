"""The order of rows and trials: with names the same draw, without them the same distribution."""

from typing import Any

import numpy as np
import pytest

from shoal.privacy import noise
from shoal.trials import (
    BestTable,
    ClusterDP,
    ClusterFree,
    NoisyHistogram,
    NoisyHorvitzThompson,
    Space,
    UniformPrior,
)
from shoal.trials.mechanisms.base import Mechanism
from tests.support.tape import Tape

pytestmark = pytest.mark.audit

N = 480
MECHANISMS: list[Mechanism] = [
    ClusterDP(epsilon=4, histogram_scale=2.0, floor=0.01),
    ClusterFree(epsilon=4, histogram_scale=2.0, floor=0.01),
    UniformPrior(epsilon=3),
    BestTable(epsilon=3),
    NoisyHorvitzThompson(epsilon=1),
    NoisyHistogram(epsilon=1),
]
IDS = [type(mechanism).__name__ for mechanism in MECHANISMS]
SPACES = {
    "levels": Space.counts(0, 10),
    "random": Space.bins(0, 10, 6),
    "nearest": Space.bins(0, 10, 6, "nearest"),
}


def columns() -> dict[str, np.ndarray[Any, Any]]:
    """Outcomes, treatments and clusters in no order; every group has rows far apart."""
    rng = np.random.default_rng(3)
    return {
        "outcomes": rng.uniform(0, 10, N).round(3),
        "treatment": rng.permutation(np.arange(N) % 2),
        "cluster": rng.permutation(np.arange(N) // 2 % 4),
    }


def orders(data: dict[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Shuffled, by outcome, by falling outcome, and by a hash of it."""
    outcome = data["outcomes"]
    by_hash = np.argsort(np.modf(outcome * 7919.1)[0])
    shuffled = np.random.default_rng(4).permutation(N)
    return [shuffled, np.argsort(outcome), np.argsort(-outcome), by_hash]


def drawn(
    monkeypatch: pytest.MonkeyPatch,
    mechanism: Mechanism,
    data: dict[str, Any],
    tape: Tape,
    space: Space,
    **options: Any,
) -> bytes:
    """The manifest of a trial."""
    monkeypatch.setattr(noise, "OperatingSystem", lambda: tape)
    return mechanism.privatize(**data, space=space, **options).document


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_with_names_every_order_of_rows_gives_the_same_draw(
    mechanism: Mechanism, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units come by their names within their groups, and so do their fair words."""
    data, names = (
        columns(),
        np.array([f"n{at:03}" for at in np.random.default_rng(8).permutation(N)]),
    )
    tape = Tape()
    one = drawn(monkeypatch, mechanism, data, tape, SPACES[space], unit=names)
    for order in orders(data):
        moved, again = {name: column[order] for name, column in data.items()}, Tape()
        other = drawn(monkeypatch, mechanism, moved, again, SPACES[space], unit=names[order])
        assert again.asked == tape.asked
        assert other == one


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_without_names_the_law_is_that_of_any_order(
    mechanism: Mechanism, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that take their fair words along give the same integers in every order.

    Words are independent and alike, so dealing them to rows in another order changes no
    probability: the distribution of a trial is a function of the outcomes in each group, not of
        their order.
    """
    data = columns()
    # Words are dealt to units in the assignment's order: by group, then by row.
    group = data["cluster"] * 2 + data["treatment"]
    place = np.argsort(group, kind="stable")
    tape = Tape(rows=np.arange(N))
    one = drawn(monkeypatch, mechanism, data, tape, SPACES[space])
    for order in orders(data):
        moved = {name: column[order] for name, column in data.items()}
        now = order[np.argsort(group[order], kind="stable")]
        rank = np.empty(N, dtype=np.int64)
        rank[place] = np.arange(N)
        again = Tape(rows=rank[now])
        other = drawn(monkeypatch, mechanism, moved, again, SPACES[space])
        assert again.asked == tape.asked
        assert other == one
