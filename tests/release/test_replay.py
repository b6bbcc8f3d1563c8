"""Neighbours with the same frozen noise look the same from outside, by every mechanism."""

from pathlib import Path

import numpy as np
import pytest

from shoal.trials.questions import noise
from tests.support.replay import Watcher, compare
from tests.support.replay_cases import CASES


@pytest.mark.parametrize(
    ("family", "every"), [("cells", 1), ("trial", 5), ("log", 1), ("unbiased mean", 1)]
)
def test_neighbours_differ_only_inside_the_mechanism(
    family: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same lines of code, draws, cost and output; numbers before noise within the stated loss.

    Every method releases three times, twice with all lines traced: some seconds.
    """
    # How good the noise of questions is does not matter here.
    monkeypatch.setattr(noise, "_SEARCH_STEPS", 5)
    # The salt of a record is random, and of no data.
    monkeypatch.setattr("shoal.release.envelope.secrets.token_hex", lambda size: "0" * 2 * size)
    rng, watcher, moved = np.random.default_rng(5), Watcher(tmp_path), 0
    cases = [name for name in CASES if name.startswith(family)][::every]
    for name in cases:
        case = CASES[name](rng)
        # What is computed once a process is computed here.
        watcher.watch(case, case.base(), trace=False)
        base = watcher.watch(case, case.base())
        wrong, unclear = ["no neighbour"], True
        while unclear:  # whether another bin was guessed, so that another range follows
            other = watcher.watch(case, case.neighbour(rng), base)
            wrong, part = compare(case, base, other)
            unclear = bool(wrong) and other.unclear
        assert not wrong, name
        moved += part > 0
    assert moved > len(cases) / 3
