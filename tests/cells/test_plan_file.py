"""Plans on disk: the same plan comes back, and a changed one does not."""

import copy
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import documents
from shoal.cells.plan import Plan
from shoal.errors import DocumentError, InputError
from tests.support import made_counts

Change = Callable[[dict[str, Any]], object]


def plan(**wanted: Any) -> shoal.Plan:
    """A plan that leaves something out."""
    wanted = {"bounds": (-5, 50), "epsilon": "3", **wanted}
    counts = made_counts.sparse(5)
    return shoal.plan(
        counts,
        min_users=int(counts.users_per_cell.min()) + 1,
        **{"method": "balanced", **wanted},
    )


BROKEN: list[Change] = [
    lambda d: d["decision"].update(status=[]),
    lambda d: d["decision"].update(scale=[1e308]),
    lambda d: d["decision"].update(scale=[-1.0] * len(d["decision"]["scale"])),
    lambda d: d["decision"].update(bits=70),
    lambda d: d["decision"].update(method="magic"),
    lambda d: d["decision"].update(joint=True),
    lambda d: d["decision"]["duals"].update(dual=[1]),
    lambda d: d["decision"]["duals"].update(dual=[0.0] * len(d["decision"]["duals"]["dual"])),
    lambda d: d["request"].update(bounds="wide"),
    lambda d: d["request"].update(tick_bits=10**10),
    lambda d: d["request"].update(nonsense=1),
    lambda d: d["request"].update(epsilon="1e99999999"),
    # Less than the decision costs.
    lambda d: d["request"].update(epsilon="2999/1000"),
    lambda d: d["counts"].update(fingerprint="0" * 64),
    lambda d: d["counts"]["count"].update(data="AAAA"),
    lambda d: d["counts"]["cells"].update(columns=[]),
    lambda d: d["counts"]["cells"]["columns"][0].update(type="INT64"),
    lambda d: d["counts"]["cells"]["columns"][0].update(type=0),
    lambda d: d.update(neighbours="presence"),
    lambda d: d.update(claims=None),
    lambda d: d.pop("decision"),
    lambda d: d.update(schema="shoal.plan/9"),
    lambda d: d.update(extra="thing"),
]


def test_a_plan_out_of_form_is_refused(tmp_path: Path) -> None:
    """Types, shapes, limits, counts that do not fit, and less epsilon than it costs."""
    path, original = tmp_path / "plan.json", plan().to_document()
    for change in BROKEN:
        document = copy.deepcopy(original)
        change(document)
        path.write_bytes(documents.canonical_bytes(document))
        with pytest.raises(DocumentError):
            shoal.Plan.load(path)


EDITED: dict[str, shoal.Plan] = {}


def leaves(part: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a document that holds nothing else."""
    for key, each in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(each, dict | list) and each:
            yield from leaves(each, (*way, key))
        else:
            yield (*way, key)


def edits(old: Any) -> st.SearchStrategy[Any]:
    """What somebody could write in place of it."""
    near = st.floats(0.1, 10).map(lambda by: old * by) if isinstance(old, float) else st.integers()
    others = st.sampled_from([None, True, "", "1/3", "balanced", [], {}, 0, -1, 1e-300, 2**70])
    return st.one_of(near, near, others)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), method=st.sampled_from(["balanced", "levy", "optimal", "user_clipped"]))
def test_a_file_with_another_leaf_costs_what_it_states_or_is_refused(
    data: st.DataObject, method: str
) -> None:
    """Any field of the model: within the epsilon asked for, and no less than by hand."""
    original = EDITED.setdefault(method, plan(method=method, epsilon=30)).to_document()
    document = copy.deepcopy(original)
    *way, last = data.draw(st.sampled_from([*leaves(document)]))
    place = functools.reduce(lambda part, key: part[key], way, document)
    place[last] = data.draw(edits(place[last]))
    try:
        found = Plan.from_bytes(documents.canonical_bytes(document))
    except (DocumentError, InputError):
        return
    assert found.exact_epsilon <= found.loss.epsilon <= found.request.epsilon
    if found.method == "balanced":
        counts, scale = found.counts, np.full(found.counts.n_cells, np.inf)
        scale[found.planned] = found.decision.scale
        lost = counts.count / counts.totals[counts.cell] / scale[counts.cell]
        assert np.bincount(counts.user, lost).max() <= found.exact_epsilon * (1 + 1e-12)


def test_the_text_of_a_plan_says_what_matters() -> None:
    """Loss, cells, errors, the gap, what is left out."""
    text = str(plan())
    for part in ("6 cells, epsilon 3 per user in all, by balanced", "with a standard",
                 "fewer than ", "certified gap", "left out"):  # fmt: skip
        assert part in text
    assert "\n" not in repr(plan())


@pytest.mark.parametrize(
    "source",
    [
        {"file": "flights"},
        {"user": "a", "value": "b", "cell": ["c"]},
        {"user": "a", "value": "b", "cell": "c", "missing": "refuse"},
        {"user": "a", "value": "b", "cell": ["c"], "missing": "guess"},
        {"user": "a", "value": "b", "cell": ["c"], "missing": "refuse", "year": 2013},
    ],
)
def test_a_description_that_no_plan_can_be_loaded_with_is_refused(source: dict[str, Any]) -> None:
    """At once, not when the saved plan is read; what `describe` gives is kept."""
    with pytest.raises(InputError, match=r"records\.describe"):
        plan(source=source)
