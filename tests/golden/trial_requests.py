"""Random requests for plans of trials, questions, forecasts, and unbiased means."""

from typing import Any

import numpy as np

from tests.golden.cell_requests import SOLVED

Request = dict[str, Any]

_BINARY, _COUNTS, _SCORES = [0.0, 1.0], [float(n) for n in range(8)], [0.0, 1.0, 2.5, 4.0, 10.0]
_FINE = [n / 4 for n in range(21)]
# Noise of many questions is searched for: processors found noise that differs by 1%.
_SEARCHED = 0.03


def _units(mechanism: str, of: list[float], **options: Any) -> Request:
    return {"mechanism": mechanism, "levels": of, "options": options}


def _asked(levels: list[float], *questions: list[Any], **more: float) -> Request:
    return {"questions": list(questions), "levels": levels, **more}


_EFFECT, _ARMS, _LINE = ["effect", {}], ["means", {}], ["regression", {"columns": ["arm", "age"]}]
_GROUPS = ["effect", {"by": "cluster"}], ["effect", {"by": "sex"}]
# Kinds of requests: a number without a common factor with 10.
TRIALS: tuple[Request, ...] = (
    _units("uniform_prior", _BINARY),
    _units("best_table", _SCORES),
    _units("uniform_prior", _COUNTS, delta="1e-6"),
    _units("noisy_histogram", _SCORES),
    _units("uniform_prior", _FINE, levels=5),
    _units("best_table", _COUNTS, levels=4),
    _units("cluster_dp", _COUNTS, floor=0.05, histogram_scale=16.0),
    _units("cluster_free", _SCORES, floor=0.1, histogram_scale=8.0),
    _asked(_BINARY, _EFFECT),
    _asked(_COUNTS, _EFFECT, _ARMS, _LINE, tolerance=_SEARCHED),
    _asked(_SCORES, *_GROUPS, spread=2.0, tolerance=_SEARCHED),
    _asked(_FINE, ["effect", {"weights": "precision"}], _ARMS),
    {"forecast": True, "levels": _SCORES, "effect": 0.4},
)

_TWO, _FOUR, _EIGHT = [2.0, 3.0], [4.0, 4.0], [8.0, 3.0]
_CLIPPED = {"method": "clipped_mean", "interval": [-10.0, 30.0], "bias": 0.05, "epsilon": 1}
_NARROW = {**_CLIPPED, "interval": [0.25, 0.75], "bias": 0.01, "epsilon": 3}
_SYMMETRIC = {"method": "symmetric_mean", "epsilon": 1, "delta": "1e-6"}
_BY_COUNTS, _CERTIFIED = {"weights": "counts"}, {"interval_by": "certified"}
MEANS: tuple[Request, ...] = (
    {**_CLIPPED, "moment": [_TWO]},
    {**_SYMMETRIC, "moment": [_EIGHT]},
    {**_CLIPPED, "moment": [_TWO, _FOUR], **_CERTIFIED},
    {**_CLIPPED, "moment": [_EIGHT], **_BY_COUNTS, "cap": 4, "epsilon": "0.5"},
    {**_SYMMETRIC, "moment": [_FOUR], **_CERTIFIED},
    {**_NARROW, "moment": [_FOUR]},
    {**_SYMMETRIC, "moment": [_FOUR], **_BY_COUNTS, "epsilon": 2},
)


def trial(rng: np.random.Generator, at: int) -> Request:
    """A request of the kind of its number: every unit has an arm, an outcome and public columns."""
    asked = TRIALS[at % len(TRIALS)]
    arms, clusters = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    size = int(rng.integers(15, 50)) * arms * clusters
    # Clusters of one size, with as many units in each arm.
    cluster, arm = np.arange(size) % clusters, np.arange(size) // clusters % arms
    order, levels = rng.permutation(size), np.array(asked["levels"])
    wanted = levels[-1] * (0.3 + 0.15 * arm + 0.15 * rng.normal(size=size))
    outcome = levels[np.abs(wanted[:, None] - levels).argmin(axis=1)]
    return {
        "tolerance": SOLVED,
        **asked,
        "epsilon": [1, "2", "0.5", 4][at // 3 % 4],
        "arm": arm[order].tolist(),
        "cluster": cluster[order].tolist(),
        "age": rng.integers(18, 90, size).tolist(),
        "sex": (np.arange(size) * 7 // 3 % 2).tolist(),
        "outcome": outcome[order].tolist(),
        # Half of the trials have names of units.
        "named": bool(at // 2 % 2),
    }


def mean(rng: np.random.Generator, at: int) -> Request:
    """A request of the kind of its number: so many users, or the counts of every user."""
    counts = np.ceil(rng.pareto(2, int(rng.integers(400, 2000))) + 0.5).astype(int).clip(1, 50)
    many = at % 4 == 3 or "weights" in MEANS[at % len(MEANS)]
    users: Any = np.sort(counts).tolist() if many else 10 * len(counts)
    return {"tolerance": SOLVED, **MEANS[at % len(MEANS)], "counts": users}
