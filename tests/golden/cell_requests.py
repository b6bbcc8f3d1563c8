"""Random requests for plans of cells, over all methods, objectives, statistics and kinds of counts.

A request is plain data: rows of user, cell and count as whole numbers, and the options of a plan.
"""

from typing import Any

import numpy as np

Request = dict[str, Any]

# Relative differences that other processors may make: of closed forms, and of what is solved by
# iterations (balanced noise, linear programs) and rounded to 24 bits, one of which is 1.2e-7.
CLOSED, SOLVED = 1e-9, 1.5e-7
ALL = ["mean", "variance", "share_above"]
DELTA = "1e-6"


def _of(method: str, tolerance: float = SOLVED, **options: Any) -> Request:
    return {"method": method, "tolerance": tolerance, **options}


# 53 kinds of requests: a number without a common factor with 10, so that each tenth meets all.
ASKED: tuple[Request, ...] = (
    _of("balanced"),
    _of("balanced", statistics=ALL),
    _of("balanced", statistics=["mean", "variance"]),
    _of("balanced", statistics=["share_above"], weights=True),
    _of("balanced", statistics=ALL, delta=DELTA),
    _of("balanced", delta=DELTA, min_users=12),
    _of("balanced", error=0.2),
    _of("balanced", max_error=0.2),
    _of("balanced", weights=True, min_records=100),
    _of("equalised", CLOSED),
    _of("equalised", CLOSED, statistics=["variance"]),
    _of("equalised", CLOSED, statistics=["mean", "variance"], delta=DELTA),
    _of("equalised", CLOSED, error=0.15),
    _of("uniform", CLOSED),
    _of("uniform", CLOSED, statistics=ALL),
    _of("uniform", CLOSED, delta=DELTA),
    _of("clip_user", CLOSED),
    _of("clip_user", CLOSED, statistics=ALL),
    _of("clip_user", settings={"spare": "best", "noise": "balanced"}),
    _of("clip_user", CLOSED, settings={"spare": "best"}, statistics=["variance"]),
    _of("optimal"),
    _of("optimal", settings={"targets": "balanced"}),
    _of("optimal", settings={"range": "selected"}),
    _of("optimal", settings={"range": "selected", "targets": "balanced"}),
    _of("optimal", statistics=["mean", "variance"], small=True),
    _of("optimal", error=0.2),
    _of("baseline"),
    _of("array_averaging"),
    _of("array_averaging", settings={"grouping": "wrap_around"}),
    _of("array_averaging", settings={"cap": 5}),
    _of("array_averaging", settings={"cap": "surrogate"}),
    _of("opt_array_averaging"),
    _of("opt_array_averaging", settings={"grouping": "wrap_around"}),
    _of("worst_case_optimal"),
    _of("worst_case_optimal", weights=True),
    _of("levy"),
    _of("levy", settings={"grouping": "wrap_around", "gamma": 0.1}),
    _of("levy", settings={"cap": "minimax"}),
    _of("quantile"),
    _of("quantile", settings={"cap": 5, "quantiles": "optimised"}),
    _of("quantile", settings={"grouping": "wrap_around"}),
    _of("akmv"),
    _of("adaptive"),
    _of("user_clipped"),
    _of("user_clipped", settings={"rounds": 2}),
    _of("user_clipped", delta=DELTA),
    _of("user_clipped", delta=DELTA, settings={"rounds": 2}),
    _of("user_clipped", max_error=0.2),
    _of("", objective="typical"),
    _of("", objective="typical", range="loose", delta=DELTA),
    _of("", objective="typical", range="tight"),
    _of("", objective="worst_case", delta=DELTA),
    _of("", objective="worst_case", statistics=["mean", "variance"], small=True),
)


def _sparse(rng: np.random.Generator, users: int, cells: int) -> np.ndarray:
    """Heavy and light users in some of the cells; the first cell has everybody."""
    present = rng.random((users, cells)) < 0.35
    present[:, 0] = True
    present[0] = True
    heavy = np.ceil(np.exp(1.2 * rng.normal(size=present.shape) + 1))
    return np.where(present, heavy, 0)


def _tied(_rng: np.random.Generator, users: int, cells: int) -> np.ndarray:
    """Users of three kinds, who count alike within a kind."""
    kind = np.arange(users) % 3
    found = np.repeat(1 + kind[:, None], cells, axis=1)
    found[kind == 2, 0] += 9
    found[kind == 1, cells // 2 :] = 0
    return found


def _alike(_rng: np.random.Generator, users: int, cells: int) -> np.ndarray:
    """Every user in every cell equally often: all users and all cells are tied."""
    return np.full((users, 2 * cells), 3)


def _nested(rng: np.random.Generator, users: int, cells: int) -> np.ndarray:
    """Cells of fewer and fewer users, a few of whom own most records."""
    reach = np.ceil(cells * rng.random(users) ** 2).astype(int)
    heavy = np.ceil(rng.pareto(1.3, users) * 3 + 1).astype(int).clip(max=400)
    return np.where(np.arange(cells) < reach[:, None], heavy[:, None], 0)


def _crowd(rng: np.random.Generator, users: int, cells: int) -> np.ndarray:
    """Four times as many users, most with one record in one of the cells."""
    found = np.zeros((4 * users, cells), dtype=int)
    found[np.arange(4 * users), rng.integers(0, cells, 4 * users)] = 1
    found[: users // 4] += rng.integers(0, 3, (users // 4, cells))
    return found


def _single(rng: np.random.Generator, users: int, _cells: int) -> np.ndarray:
    """One cell."""
    return np.ceil(np.exp(rng.normal(size=(2 * users, 1)) + 1)).astype(int)


SHAPES = (_sparse, _tied, _alike, _nested, _crowd, _sparse, _single)


def rows_of(rng: np.random.Generator, counts: np.ndarray) -> Request:
    """Memberships in a random order, of users with names that say nothing."""
    user, cell = np.nonzero(counts)
    cell = np.unique(cell, return_inverse=True)[1]
    count = counts[counts > 0].astype(int)
    names = rng.permutation(5 * len(counts))[: len(counts)]
    order = rng.permutation(len(user))
    columns = names[user[order]], cell[order], count[order]
    return dict(zip(("user", "cell", "count"), (each.tolist() for each in columns), strict=True))


def request(rng: np.random.Generator, at: int, wide: int = 0) -> Request:
    """A request of the kind of its number; of so many cells, if said."""
    asked = dict(ASKED[at % len(ASKED)])
    shape = SHAPES[at % len(SHAPES)]
    small = asked.pop("small", False)
    users = int(rng.integers(8, 20) if small else rng.integers(15, 100))
    rows = rows_of(rng, shape(rng, users, wide or int(rng.integers(2, 5 if small else 12))))
    low, high = [(0, 100), (-5, 5), (0, 700), (0.25, 1)][at // 3 % 4]
    tolerance = asked.pop("tolerance")
    plan: Request = {"bounds": [low, high], **{name: each for name, each in asked.items() if each}}
    if "share_above" in plan.get("statistics", ()):
        above = f"share_above({low + (high - low) * 0.625:g})"
        plan["statistics"] = [above if s == "share_above" else s for s in plan["statistics"]]
    if plan.pop("weights", False):
        plan["weights"] = {"0": 3.0, str(max(rows["cell"])): 0.5}
    if "error" in plan:
        square = (high - low) / 4 if plan.get("statistics") == ["variance"] else 1
        plan["error"] = plan["error"] * (high - low) * square
    else:
        plan["epsilon"] = [2, "4", 8, "7/3", 16, "0.75"][at // 2 % 6]
    if "max_error" in plan:
        plan["max_error"] = f"{100 * plan['max_error']:g}%"
    elif "uninformative" not in plan:
        plan["uninformative"] = ["keep", "keep", "drop"][at % 3]
    if at // 3 % 5 == 4:
        plan["tick_bits"] = [12, 24][at % 2]
    # Some must come out the same with their rows from last to first.
    reverse = at // 3 % 3 == 1
    return {
        "tolerance": tolerance,
        "keys": 1 + at // 2 % 2,
        "reverse": reverse,
        **rows,
        "plan": plan,
    }
