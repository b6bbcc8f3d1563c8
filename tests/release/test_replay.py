"""Neighbours with the same frozen noise look the same from outside, by every mechanism."""

import os
from pathlib import Path

import numpy as np
import pytest

from shoal.trials.questions import noise
from tests.support.replay import Watcher, compare
from tests.support.replay_cases import CASES

# Of trials every way to plan, kind of rows and of outcomes, but not each of each.
PART = slice(None) if os.environ.get("SHOAL_FULL") else slice(2, None, 6)


@pytest.mark.parametrize(
    ("family", "part"), [("cells", slice(None)), ("trial", PART), ("unbiased mean", slice(None))]
)
def test_neighbours_differ_only_inside_the_mechanism(
    family: str, part: slice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same lines of code, draws, cost and output; numbers before noise within the stated loss.

    Every method is planned and released three times, twice with all lines traced: some seconds.
    """
    # How good the noise of questions is does not matter here.
    monkeypatch.setattr(noise, "_SEARCH_STEPS", 5)
    rng, watcher, moved = np.random.default_rng(5), Watcher(tmp_path), 0
    cases = [name for name in CASES if name.startswith(family)][part]
    for name in cases:
        case = CASES[name](rng)
        # What is computed once a process is computed here.
        watcher.watch(case, case.base(), trace=False)
        base = watcher.watch(case, case.base())
        wrong, unclear = ["no neighbour"], True
        while unclear:  # whether another bin was guessed, so that another range follows
            other = watcher.watch(case, case.neighbour(rng), base)
            wrong, apart = compare(case, base, other)
            unclear = bool(wrong) and other.unclear
        assert not wrong, name
        moved += apart > 0
    assert moved > len(cases) / 3
