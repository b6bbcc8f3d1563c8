"""Every way to plan and release cells, by name, and data whose users are tied."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import shoal
from shoal.cells.estimates.draw import draw
from shoal.cells.mechanisms.methods import METHODS as NAMES
from shoal.cells.mechanisms.methods import method_of
from shoal.data.aggregate import Aggregate
from tests.support.tape import Tape

BOUNDS = (0.0, 100.0)
# Methods by what they plan: noise alone, users of all cells at once, or cell by cell.
ALLOCATIONS = [name for name in NAMES if method_of(name).planner == "shared"]
BOUNDINGS = [name for name in NAMES if method_of(name).planner in ("optimal", "clip user")]
MECHANISMS = [name for name in NAMES if method_of(name).planner in ("by cell", "user clipped")]
ALL = ("mean", "variance", "share_above(60)")
SETTINGS: dict[str, dict[str, Any]] = {
    "clip_user-best-balanced": {"spare": "best", "noise": "balanced"},
    "optimal-balanced": {"targets": "balanced"},
    "optimal-selected": {"range": "selected"},
    "optimal-selected-balanced": {"range": "selected", "targets": "balanced"},
    "array_averaging-wrap_around": {"grouping": "wrap_around"},
    "array_averaging-5": {"cap": 5},
    "opt_array_averaging-wrap_around": {"grouping": "wrap_around"},
    "levy-wrap_around": {"grouping": "wrap_around"},
    "levy-5": {"cap": 5},
    "levy-minimax": {"cap": "minimax"},
    "quantile-wrap_around": {"grouping": "wrap_around"},
    "quantile-5-optimised": {"cap": 5, "quantiles": "optimised"},
    "user_clipped-twice": {"rounds": 2},
}
# Wishes of `shoal.plan` besides bounds and epsilon, by a name that starts with the method's.
METHODS: dict[str, dict[str, Any]] = {
    **{name: {"method": name} for name in (*ALLOCATIONS, *BOUNDINGS, *MECHANISMS)},
    **{name: {"method": name.split("-")[0], "settings": own} for name, own in SETTINGS.items()},
    **{f"{name}-all": {"method": name, "statistics": ALL} for name in (*ALLOCATIONS, *BOUNDINGS)},
    "balanced-joint": {"method": "balanced", "statistics": ("mean", "variance")},
    "balanced-gaussian-all": {"method": "balanced", "delta": "1e-3", "statistics": ALL},
    "user_clipped-gaussian": {"method": "user_clipped", "delta": "1e-3"},
    "user_clipped-gaussian-twice": {
        "method": "user_clipped",
        "delta": "1e-3",
        "settings": {"rounds": 2},
    },
}


@cache
def tied(seed: int = 0, users: int = 60, cells: int = 4) -> pa.Table:
    """Records of users of three kinds; those of a kind have equal counts and values far apart."""
    rng = np.random.default_rng(seed)
    kind, level = np.arange(users) % 3, rng.uniform(5, 95, users)
    count = np.repeat(1 + kind[:, None], cells, axis=1)
    count[kind == 2, 0] += 9
    who = np.repeat(np.repeat(np.arange(users), cells), count.ravel())
    where = np.repeat(np.tile(np.arange(cells), users), count.ravel())
    order = rng.permutation(len(who))
    names = np.array([f"u{number:04}" for number in rng.permutation(10 * users)[:users]])
    value = np.round(np.clip(level[who] + rng.normal(0, 3, len(who)), 0, 100), 2)
    return pa.table(
        {
            "who": names[who[order]].tolist(),
            "place": [f"p{number}" for number in where[order]],
            "value": value[order].tolist(),
        }
    )


def neighbour(table: pa.Table, user: str, value: float) -> pa.Table:
    """The same records with all values of one user replaced."""
    own = pc.equal(table.column("who"), pa.scalar(user))
    changed = pc.if_else(own, pa.scalar(float(value)), table.column("value"))
    return table.set_column(table.column_names.index("value"), "value", changed)


def orders(table: pa.Table, seed: int = 1) -> dict[str, pa.Table]:
    """The same records shuffled, sorted by value, by user and by a hash, and in many chunks."""
    rng = np.random.default_rng(seed)
    by_value = table.sort_by([("value", "ascending"), ("who", "ascending")])
    words = table.column("value").to_numpy() * 7919 * (5**0.5 - 1) / 2
    mixed = np.argsort(np.modf(words)[0], kind="stable")
    shuffled = table.take(rng.permutation(table.num_rows))
    return {
        "shuffled": shuffled,
        "by value": by_value,
        "by falling value": table.sort_by([("value", "descending"), ("who", "descending")]),
        "by user": table.sort_by([("who", "ascending"), ("value", "ascending")]),
        "by falling user": table.sort_by([("who", "descending"), ("value", "ascending")]),
        "hashed": table.take(mixed),
        "chunked": pa.concat_tables(shuffled.slice(at, 7) for at in range(0, table.num_rows, 7)),
    }


def records(source: object) -> shoal.Records:
    """Records of such a table."""
    return shoal.Records(
        source, user="who", value="value", bounds=BOUNDS, by="place", counts="public"
    )


def plan(source: object, wanted: Mapping[str, Any], epsilon: object = 4) -> shoal.Plan:
    """A plan for them: every cell is kept."""
    options = {"bounds": BOUNDS, "epsilon": epsilon, "min_users": 1, **wanted}
    if not {"std", "sum", "median"} & {*options.get("statistics", ())}:
        options = {"method": "balanced", "uninformative": "keep", **options}
    return shoal.plan(records(source).counts(), **options)


def aggregate(made: shoal.Plan, source: object) -> Aggregate:
    """What a release of the plan reads."""
    measures = [each.measure for each in made.statistics if each.measure is not None]
    return records(source).aggregate(measures)[1]


def recorded(
    made: shoal.Plan, found: Aggregate, part: float = 0.5, like: Tape | None = None
) -> Tape:
    """Everything that reaches noise and selections when a plan is carried out."""
    tape = Tape(part=part, answers=[] if like is None else like.given)
    draw(made, found, tape)
    return tape


def sorted_by_value(
    profile: Mapping[str, int], users: int, others: Mapping[str, int], period: int, level: float
) -> pa.Table:
    """Tied users in a file sorted by value, where the user of level 0 comes first or last."""
    places = [place for place, count in profile.items() for _ in range(count)]
    one = np.arange(users * len(places)) // len(places)
    first = np.arange(len(one)) % len(places) == 0
    value = np.where(first, one * 1e-3, 1.0 + 98.0 * ((one // period) % 2))
    value = np.where(one == 0, level, value)
    names = np.array([f"u{n:04}" for n in np.random.default_rng(7).permutation(users)])
    more = [place for place, count in others.items() for _ in range(count)]
    return pa.table(
        {
            "who": [*names[one].tolist(), *(["v"] * len(more))],
            "place": [*(places * users), *more],
            "value": [*value.tolist(), *([50.0] * len(more))],
        }
    ).sort_by([("value", "ascending"), ("who", "ascending")])
