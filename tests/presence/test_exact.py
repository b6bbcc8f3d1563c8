"""P-EXACT: the loss of whole releases of tiny data sets, by the laws of the noise.

All data sets of at most three users with at most two records in two cells at two values; a user
comes or goes. Outcomes of all draws are prescribed, and the chance of each is computed.
"""

import itertools
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.data.memberships import Memberships
from shoal.presence import draw
from shoal.presence.keys import cells_of
from shoal.presence.members import Members
from shoal.presence.request import Request
from shoal.presence.rounds import Round, rounds_of

TOP = 1 << 10
# A cell and a value in ticks of each record that there can be.
RECORDS = [*itertools.product((0, 1), (0, TOP))]
USERS = [each for many in (1, 2) for each in itertools.combinations_with_replacement(RECORDS, many)]
PAIRS = None if os.environ.get("SHOAL_FULL") else 60
UNITS = 4
BITS = 3
WANTED: dict[str, dict[str, Any]] = {
    "records and means": {"statistics": ["records", "mean"]},
    "users and medians": {"statistics": ["users", "median"], "pieces": 2},
    "at most one record": {"statistics": ["records", "sum", "mean"], "records_per_user": 1},
}


@dataclass
class Chances:
    """Answers draws as prescribed, and adds up the logarithm of the chance of that answer."""

    seed: int
    kind: str
    chance: float = 0.0
    of_selection: float = 0.0

    def _outcome(self, size: int, draw: int) -> list[int]:
        if self.kind == "high":
            return [100] * size
        if self.kind == "low":
            return [-100] * size
        return np.random.default_rng([self.seed, draw]).integers(-9, 20, size).tolist()

    def add_laplace(self, steps: list[int], bits: int, draw: int) -> list[int]:
        """As likely as exp(-|z|/2^bits) in each number."""
        found = self._outcome(len(steps), draw)
        self.chance -= sum(abs(x - y) for x, y in zip(found, steps, strict=True)) / 2**bits
        return found

    def add_hull(self, steps: list[int], bits: int, draw: int) -> list[int]:
        """As likely as exp(-norm/2^bits)."""
        found = self._outcome(len(steps), draw)
        noise = [x - y for x, y in zip(found, steps, strict=True)]
        self.chance -= (max(0, *noise) + max(0, *(-each for each in noise))) / 2**bits
        return found

    def select(self, scores: np.ndarray, scale: float, draw: int) -> int:
        """Permute-and-flip selects what is largest with exponential noise: an integral."""
        at = int(np.random.default_rng([self.seed, draw]).integers(len(scores)))
        above = (np.asarray(scores, dtype=np.float64) - float(scores[at])) / scale
        first = max(float(above.max()), 0.0)
        x, weight = np.polynomial.laguerre.laggauss(60)
        others = np.delete(above, at)
        within = -np.expm1(np.minimum(others[:, None] - (first + x), 0.0))
        self.of_selection += math.log(float(weight @ within.prod(axis=0))) - first
        return at


def members_of(users: tuple[Any, ...], request: Request, measures: Any) -> Members:
    """What a pass leaves of users, by hand."""
    rows = [(at, *record) for at, own in enumerate(users) for record in own]
    pairs = sorted({(at, cell) for at, cell, _ in rows})
    ticks = [[value for at, where, value in rows if (at, where) == pair] for pair in pairs]
    measured = np.zeros((len(measures), len(pairs)), dtype=np.int64)
    for at, ramp in enumerate(measures):
        for place, values in enumerate(ticks):
            up = [min(max(value - ramp.low, 0), ramp.width) for value in values]
            measured[at, place] = sum(up)
    numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    found = Memberships(
        numbers[:, 0], numbers[:, 1], np.array([*map(len, ticks)], dtype=np.int64), len(users), 2
    )
    return Members(found, np.array([*map(sum, ticks)], dtype=np.int64), measured)


@pytest.mark.parametrize("name", WANTED)
def test_no_outcome_is_likelier_than_epsilon_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every pair of neighbours, or 60 of them; somebody attains all of it."""
    records = shoal.Records("none.csv", user="u", value="v", bounds=(0, 2), by="c", tick_bits=10)
    request = Request.of(
        keys=cells_of({"c": [0, 1]}, records.rules),
        bounds=(0, 2),
        tick_bits=10,
        epsilon=2,
        users=3,
        **WANTED[name],
    )
    rounds = {
        kind: Round({block: UNITS for block in each.blocks}, BITS)
        for kind, each in rounds_of(request).items()
    }
    epsilon = sum(each.whole for each in rounds.values()) / 2**BITS
    selection = rounds["range"].whole / 2**BITS
    now: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        draw, "members", lambda *given, **more: members_of(now[0], request, [*given, ()][2])
    )
    sets = [(), *((each,) for each in USERS), *itertools.combinations(USERS, 2)]
    pairs = [(before, user) for before in sets for user in USERS]
    if PAIRS is not None:
        chosen = np.random.default_rng(0).choice(len(pairs), PAIRS, replace=False)
        pairs = [pairs[at] for at in chosen.tolist()]
    worst = 0.0
    for at, (before, user) in enumerate(pairs):
        for kind in ("high", "low", "some"):
            noise = []
            for users in (before, (*before, user)):
                now[:] = [users]
                noise.append(Chances(at, kind))
                draw.draw(request, rounds, records, noise[-1])  # type: ignore[arg-type]
            selected = noise[1].of_selection - noise[0].of_selection
            assert abs(selected) <= selection * (1 + 1e-9)
            loss = abs(noise[1].chance - noise[0].chance)
            assert loss <= (epsilon - selection) * (1 + 1e-9)
            worst = max(worst, loss)
    assert worst >= 0.999 * (epsilon - selection)
