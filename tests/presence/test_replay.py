"""P-REPLAY: outcomes are prescribed, and what goes into each draw with and without a user compared.

A test of norms does not see rows that are paired with another user's amounts, nor sums that follow
the engine's order. This one does: whatever came before, a user adds a vector from 0 that adds up to
at most what the plan accounts for, to every draw, and lowers nothing.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.presence.draw import draw
from shoal.presence.guide import CapPart, Guide
from shoal.presence.keys import cells_of
from shoal.presence.request import Request
from shoal.presence.rounds import rounds_of
from shoal.privacy.accounting import account

PAIRS = 500 if os.environ.get("SHOAL_FULL") else 50
WANTED: dict[str, dict[str, Any]] = {
    "a mean": {"statistics": ["mean"]},
    "all": {"statistics": ["users", "records", "sum", "mean", "median", "histogram"]},
    "users of few cells": {"statistics": ["users", "records"], "few": True},
    "at most five records": {"statistics": ["records", "sum", "mean"], "records_per_user": 5},
    "with a guide": {
        "statistics": ["records", "median"],
        "guide": Guide(
            release="before",
            users=40,
            priority=(0.1, 30, 1, 1, 1e-9, 1e9, 2, 1, 1, 1, 1, 5),
            caps={
                name: CapPart(size=size, up=1, moved=0, users=9, known=True, hull=False)
                for name, size in (("records", 7), ("values", 1e-3))
            },
            range=5,
        ),
    },
}


@dataclass
class Prescribed:
    """Answers every draw with the same numbers, whatever it is asked; keeps what it was asked."""

    seed: int
    asked: dict[int, list[int]] = field(default_factory=dict)

    def _answer(self, steps: list[int], bits: int, draw: int) -> list[int]:
        self.asked[draw] = list(map(int, steps))
        rng = np.random.default_rng([self.seed, draw])
        # From nothing to a few users in each number: looks see something in some.
        return [int(each) for each in rng.gamma(0.4, 2.0 ** (bits + 3), len(steps))]

    add_laplace = add_hull = _answer

    def select(self, scores: np.ndarray, scale: float, draw: int) -> int:
        """A candidate by the seed alone."""
        self.asked[draw] = scores.tolist()
        return int(np.random.default_rng([self.seed, draw]).integers(len(scores)))


def table(seed: int) -> pd.DataFrame:
    """Users of very different sizes, in cells that are listed and others, sorted by nothing."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 40, 25) ** rng.integers(1, 3, 25)
    user = np.repeat(np.arange(25), size)
    frame = pd.DataFrame(
        {
            "who": user,
            "where": rng.zipf(1.5, len(user)) % 14,
            "value": rng.choice([0.0, 0.1, 3.3, 7.7, 10.0, 12.0], len(user)),
        }
    )
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def asked_of(frame: pd.DataFrame, wanted: dict[str, Any], seed: int) -> tuple[Any, Prescribed]:
    """What each draw is asked for a table."""
    wanted = dict(wanted)
    cells = 4 if wanted.pop("few", False) else 12
    source = pa.Table.from_pandas(frame, preserve_index=False)
    records = shoal.Records(source, user="who", value="value", bounds=(0, 10), by="where")
    request = Request.of(
        keys=cells_of({"where": range(cells)}, records.rules),
        bounds=(0, 10),
        epsilon=2,
        users=25,
        **wanted,
    )
    noise = Prescribed(seed)
    draw(request, rounds_of(request), records, noise)  # type: ignore[arg-type]
    return request, noise


def moves(request: Any, whole: Prescribed, less: Prescribed) -> Iterator[tuple[int, int, int]]:
    """Of each draw: the sum by which it moves, the least and the largest move of a number."""
    assert whole.asked.keys() == less.asked.keys()
    for number, steps in whole.asked.items():
        other = less.asked[number]
        assert len(steps) == len(other)
        apart = [x - y for x, y in zip(steps, other, strict=True)]
        yield number, sum(apart), min(apart)


@pytest.mark.parametrize("name", WANTED)
def test_a_user_moves_each_draw_by_at_most_what_it_costs(name: str) -> None:
    """Without one user, in another order of rows: 50 pairs of releases, 500 in full; seconds."""
    furthest = {}
    for seed in range(PAIRS):
        frame = table(seed)
        without = int(np.random.default_rng(seed).integers(25))
        less = frame[frame["who"] != without].sample(frac=1, random_state=seed + 1)
        request, first = asked_of(frame, WANTED[name], seed)
        _, second = asked_of(less.reset_index(drop=True), WANTED[name], seed)
        rounds = rounds_of(request)
        limits = {
            at: rounds[kind].whole
            for at, kind in ((1, "cells"), (2, "sizes"), (3, "range"), (4, "answers"))
            if kind in rounds
        }
        if 5 in first.asked:
            # Users without a cap have a draw of their own.
            limits[5] = rounds["answers"].blocks["users"]
            limits[4] -= limits[5]
        for number, total, least in moves(request, first, second):
            assert least >= 0
            if number == 3:
                total = max(x - y for x, y in zip(first.asked[3], second.asked[3], strict=True))
            elif number == 5:
                apart = {x - y for x, y in zip(first.asked[5], second.asked[5], strict=True)}
                assert apart <= {0, limits[5]}
                total = max(apart)
            assert 0 <= total <= limits[number], number
            furthest[number] = max(furthest.get(number, 0.0), total / limits[number])
        loss = account([each.step(kind) for kind, each in rounds.items()]).epsilon
        assert 1.999 < loss <= 2
    # Somebody moves each draw nearly as far as it is charged.
    assert min(furthest.values()) > 0.9, furthest
