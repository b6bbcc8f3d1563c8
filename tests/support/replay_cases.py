"""Data sets with plans to replay, of all families."""

from collections.abc import Callable

from tests.support import replay_cells, replay_means, replay_trials
from tests.support.replay import Case

CASES: dict[str, Callable[..., Case]] = {
    **replay_cells.CASES,
    **replay_trials.CASES,
    **replay_means.CASES,
}
