"""Nobody writes into public facts: not into arrays given or derived, nor into those of copies."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials, unbiased
from shoal.checks.frozen import FrozenDict, exactly, own
from shoal.data.assignment import enrol
from shoal.errors import InputError
from tests.support import methods
from tests.support.loop import loop_over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.unit, pytest.mark.full]

TABLE = methods.tied(3, 14, 3)
KINDS: dict[str, dict[str, Any]] = {
    "clipped_mean": {"epsilon": 1, "interval": (0, 1), "bias": 0.5},
    "sampled_mean": {"delta": "0.1", "interval": (0, 1), "publish_values": True},
    "symmetric_mean": {"epsilon": 1, "delta": "1e-3"},
}


def _unbiased(name: str) -> unbiased.UnbiasedPlan:
    counts = np.ones(3000, dtype=np.int64)
    return unbiased.plan(name, counts, moment=unbiased.Moment(2, 1.0), weights="counts",
                         source={"year": 2013}, **KINDS[name])  # fmt: skip


def _prepared() -> object:
    arms, cluster = np.arange(400) % 2, np.arange(400) // 100
    assignment = enrol(arms, cluster).assignment
    assignment.to_document()
    return trials.ClusterDP(epsilon=2).prepare(assignment, trials.Space.binary()), assignment


MADE: dict[str, Callable[[], object]] = {
    **{name: partial(methods.plan, TABLE, methods.METHODS[name]) for name in methods.METHODS},
    "of records": lambda: shoal.plan(
        methods.records(TABLE).occupancy(),
        method="balanced",
        bounds=methods.BOUNDS,
        epsilon=4,
        source=methods.records(TABLE).describe(),
    ),
    **{name: partial(_unbiased, name) for name in KINDS},
    "trial": lambda: trials.plan(
        sizes=np.array([[100, 120], [80, 90]]), space=trials.Space.binary(), epsilon=1
    ),
    "mechanism of a trial": _prepared,
}


def _look(found: object) -> None:
    """Ask for every property: what is derived is kept."""
    for name in dir(type(found)):
        if isinstance(getattr(type(found), name), property) or hasattr(
            getattr(type(found), name), "attrname"
        ):
            # A pair of moments is only there where they are released jointly.
            with suppress(ValueError):
                getattr(found, name)


def _reached(found: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Every array and mapping that is kept in a public object, by where it is."""
    if id(found) in seen:
        return
    seen.add(id(found))
    parts: dict[Any, Any] = {}
    if isinstance(found, np.ndarray):
        yield path, found
        yield from _reached(found.base, f"{path}.base", seen)
    elif isinstance(found, Mapping):
        yield path, found
        parts = dict(found)
    elif isinstance(found, tuple | list):
        yield path, found
        parts = dict(enumerate(found))
    elif hasattr(found, "indptr"):
        parts = {name: getattr(found, name) for name in ("data", "indices", "indptr")}
    elif type(found).__module__.startswith("shoal") and not isinstance(found, bytes):
        parts = {name: each for name, each in vars(found).items() if name != "_document"}
    for name, each in parts.items():
        yield from _reached(each, f"{path}.{name}", seen)


def _open(found: object) -> list[str]:
    return [
        path
        for path, each in _reached(found, "plan", set())
        if (_opens(each) if isinstance(each, np.ndarray) else type(each) in (dict, list))
    ]


def _opens(found: np.ndarray[Any, Any]) -> bool:
    with suppress(ValueError):
        found.setflags(write=True)
    return found.flags.writeable


@loop_over(
    "name",
    MADE,
)
def test_nothing_public_can_be_written_into(name: str) -> None:
    """No array or mapping of a plan changes after its loss was computed.

    Nor can an array's owner make it writable again: weights set to 0 would be charged as nothing.
    """
    made = MADE[name]()
    for each in made if isinstance(made, tuple) else (made,):
        if isinstance(each, shoal.Plan):
            _look(each.design)
            _look(each.queries)
            _look(each.occupancy)
        _look(each)
        str(each)
        assert _open(each) == []


def test_a_plans_description_makes_another_plan() -> None:
    """What a plan says of its records is what `shoal.plan` takes."""
    made = MADE["of records"]()
    assert isinstance(made, shoal.Plan)
    again = shoal.plan(
        made.occupancy, method="balanced", bounds=methods.BOUNDS, epsilon=4, source=made.source
    )
    assert again.to_document() == made.to_document()
    assert made.frontier(["balanced"], [4]).plan("balanced", 4).source == made.source


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_are_closed_too_and_forget_what_was_derived(
    how: Callable[[object], shoal.Plan],
) -> None:
    """A copy that could be written into would be charged the original's loss."""
    plan = methods.plan(TABLE, methods.METHODS["levy"])
    loss = plan.exact_epsilon
    found = how(plan)
    assert "exact_epsilon" not in vars(found)
    assert found.exact_epsilon == loss
    assert _open(found) == []
    assert found.to_document() == plan.to_document()


@pytest.mark.parametrize("how", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
@pytest.mark.parametrize("name", KINDS)
def test_copies_of_estimators_derive_their_losses_again(
    name: str, how: Callable[[object], unbiased.UnbiasedPlan]
) -> None:
    """What a copy is charged follows from its own parts."""
    plan = _unbiased(name)
    loss, bound = plan.estimator.loss, plan.rmse_bound
    assert "loss" in vars(plan.estimator)
    found = how(plan)
    assert not {"loss", "rmse_bound", "variance_bound"} & vars(found.estimator).keys()
    assert (found.estimator.loss, found.rmse_bound) == (loss, bound)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_large_copies_are_closed_too(how: Callable[[object], Any]) -> None:
    """NumPy lets anybody write into what it unpickles, if it is above 1000 bytes."""
    many = np.arange(3000) % 7 + 1
    plan = unbiased.plan("clipped_mean", many, moment=unbiased.Moment(2, 1.0), weights="counts",
                         **KINDS["clipped_mean"])  # fmt: skip
    counts = shoal.Occupancy.from_counts(np.arange(3000) % 200, np.arange(3000), many)
    cells = shoal.plan(counts, method="balanced", bounds=(0, 1), epsilon=9, uninformative="keep")
    for made in (plan, counts, cells):
        assert _open(how(made)) == []


def test_arrays_that_were_unpickled_are_not_kept() -> None:
    """Whoever has them, or a view of them, could write into them later."""
    given = pickle.loads(pickle.dumps(np.arange(3000)))
    view = given[:]
    given.setflags(write=False)
    kept = own(given)
    view[:] = 7
    assert kept.tolist() == list(range(3000))


def test_what_occupancies_derive_cannot_be_opened_again() -> None:
    """A total that is written into would make sensitivities other than they are."""
    occupancy = methods.records(TABLE).occupancy()
    derived = [occupancy.totals, occupancy.users_per_cell, occupancy.cells_per_user]
    assert not any(map(_opens, [occupancy.user, occupancy.cell, occupancy.count, *derived]))
    first = occupancy.to_document()
    first["cells"]["columns"] = first["cell"]["data"] = None
    assert (
        occupancy.to_document()
        == shoal.Occupancy.from_document(occupancy.to_document()).to_document()
    )


def test_cells_that_callers_keep_are_not_the_occupancys() -> None:
    """Arrow shares the memory of NumPy's arrays; the keys of cells do not change."""
    made = shoal.Occupancy.from_counts([0, 1, 0, 1], [1, 1, 2, 2], [3, 4, 5, 6])
    key = np.array([1, 2])
    own_cells = dataclasses.replace(made, cells=pa.table({"cell": pa.array(key)}))
    before = own_cells.fingerprint
    key[:] = 7, 8
    for each in (own_cells, copy.copy(own_cells), pickle.loads(pickle.dumps(own_cells))):
        assert each.cells["cell"].to_pylist() == [1, 2]
        assert each.fingerprint == before == made.fingerprint


def test_what_callers_keep_is_not_the_plans() -> None:
    """Counts that change after planning do not change the plan."""
    counts = np.ones(200, dtype=np.int64)
    plan = unbiased.plan("clipped_mean", counts, moment=unbiased.Moment(2, 1.0), weights="counts",
                         **KINDS["clipped_mean"])  # fmt: skip
    counts[0] = 10**6
    assert plan.request.counts.tolist() == plan.estimator.weights.number.tolist() == [1] * 200
    sizes = np.array([[10, 12], [8, 9]])
    trial = trials.plan(sizes=sizes, space=trials.Space.binary(), epsilon=1)
    sizes[:] = 1
    assert trial.n == 39
    settings = {"gamma": 0.1}
    wanted = dataclasses.replace(methods.plan(TABLE, {"method": "levy"}).request, settings=settings)
    settings["gamma"] = 0.5
    assert wanted.settings == {"gamma": 0.1}


@loop_over(
    "kind",
    ["u1", "i1", "u2", "i4", ">i8", "i8"],
)
@loop_over(
    "name",
    ["count", "cell", "user"],
)
def test_the_loss_does_not_depend_on_how_counts_are_stored(kind: str, name: str) -> None:
    """Counts of one byte overflowed, and a release was charged nothing."""
    plan = methods.plan(TABLE, methods.METHODS["array_averaging"])
    made = plan.occupancy
    own_kind = dataclasses.replace(made, **{name: getattr(made, name).astype(kind)})
    assert getattr(own_kind, name).dtype == np.int64
    assert own_kind.fingerprint == made.fingerprint
    assert dataclasses.replace(plan, occupancy=own_kind).exact_epsilon == plan.exact_epsilon


@pytest.mark.parametrize("kind", ["f8", "O", "bool", "complex", "U5"])
def test_counts_are_whole_numbers(kind: str) -> None:
    """An occupancy takes whole numbers alone."""
    made = methods.records(TABLE).occupancy()
    with pytest.raises(InputError):
        dataclasses.replace(made, count=made.count.astype(kind))


@loop_over(
    "change",
    [
        lambda o: {"count": o.count[:-1]},
        lambda o: {"count": o.count * 0},
        lambda o: {"count": -o.count},
        lambda o: {"count": o.count + 2**40},
        lambda _: {"count": None},
        lambda o: {"count": o.count.reshape(-1, 1)},
        lambda o: {"count": np.ma.masked_array(o.count, mask=True)},
        lambda o: {"user": o.user[::-1]},
        lambda o: {"user": o.user + 1},
        lambda o: {"user": o.user * 2},
        lambda o: {"cell": o.cell[::-1]},
        lambda o: {"cell": o.cell + 1},
        lambda o: {"cell": o.cell * 0},
        lambda o: {"user": o.user[:0], "cell": o.cell[:0], "count": o.count[:0]},
    ],
)
def test_an_occupancy_is_one(change: Callable[[shoal.Occupancy], dict[str, Any]]) -> None:
    """Memberships out of order, or of no cell, are refused in words."""
    made = methods.records(TABLE).occupancy()
    with pytest.raises(InputError):
        dataclasses.replace(made, **change(made))


CHANGES: list[Callable[[np.ndarray[Any, Any]], Any]] = [
    lambda a: a[:-1],
    lambda a: np.append(a, a[:1]),
    lambda a: a.reshape(-1, 1),
    lambda a: a.tolist(),
    lambda a: a.astype(object),
    lambda a: a.astype(complex),
    lambda a: a * 0 - 1,
    lambda a: np.full(a.shape, np.nan),
    lambda a: np.full(a.shape, np.inf),
    lambda a: np.full(a.shape, 1e200),
    lambda a: a[:0],
    str,
]


@loop_over(
    "change",
    range(len(CHANGES)),
)
@loop_over(
    "name",
    ["balanced", "levy", "optimal", "adaptive", "clip_user"],
)
def test_parts_of_another_form_are_refused(name: str, change: int) -> None:
    """Whatever a part of a plan is replaced by, it is refused in words."""
    plan, spoil = methods.plan(TABLE, methods.METHODS[name]), CHANGES[change]
    for each in ("relative_scale", "selection_scale", "duals", "targets"):
        found = getattr(plan, each)
        if found is not None and found.size:
            with pytest.raises(InputError):
                dataclasses.replace(plan, **{each: spoil(found)})
    for each, value in plan.parameters.items():
        if each != "reward":
            with pytest.raises(InputError):
                dataclasses.replace(plan, parameters={**plan.parameters, each: spoil(value)})


@loop_over(
    "part",
    [
        {"status": ()},
        {"status": ("released",)},
        {"status": "released"},
        {"status": ("lost",) * 3},
        {"lattice_bits": 20.0},
        {"lattice_bits": -1},
        {"lattice_bits": 61},
        {"joint": 1},
        {"gaussian": None},
        {"parameters": None},
        {"parameters": {"cap": np.ones(3, dtype=np.int64)}},
        {"occupancy": None},
        {"request": None},
        {"lattice": None},
        {"source": 3},
        {"duals": None},
    ],
)
def test_parts_of_another_kind_are_refused(part: dict[str, Any]) -> None:
    """Nothing but a plan's own kinds of parts makes a plan."""
    plan = methods.plan(TABLE, methods.METHODS["balanced"])
    with pytest.raises(InputError):
        dataclasses.replace(plan, **part)


@pytest.mark.parametrize("name", ["balanced", "optimal"])
@pytest.mark.parametrize("duals", [None, 0.0])
def test_a_plan_keeps_the_prices_that_prove_it(name: str, duals: float | None) -> None:
    """Without dual variables, or with none above 0, its release would not verify."""
    plan = methods.plan(TABLE, methods.METHODS[name])
    assert plan.duals is not None
    with pytest.raises(InputError):
        dataclasses.replace(plan, duals=duals if duals is None else plan.duals * duals)


@pytest.mark.parametrize("part", ["request", "estimator", "source"])
def test_parts_of_another_mean_are_refused(part: str) -> None:
    """A request and an estimator that do not belong together make no plan."""
    made, other = _unbiased("clipped_mean"), _unbiased("symmetric_mean")
    for each in (None, 3) if part == "source" else (None, 3, getattr(other, part)):
        if (part, each) != ("source", None):
            with pytest.raises(InputError):
                dataclasses.replace(made, **{part: each})  # type: ignore[arg-type]


def test_arrays_keep_their_values_or_are_refused() -> None:
    """No number is rounded or wrapped on its way to one type."""
    assert exactly(np.array([3], dtype="u1"), np.int64, "count").dtype == np.int64
    for odd in (np.array([2**63 + 5], dtype="u8"), np.array([1.5]), np.array(["1"]), [1], None):
        with pytest.raises(InputError):
            exactly(odd, np.int64, "count")
    with pytest.raises(InputError):
        own(np.array([object()]))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(cap=3),
        lambda d: d.pop("cap"),
        lambda d: d.setdefault("more", 1),
        lambda d: d.clear(),
        lambda d: d.__setitem__("cap", 3),
        lambda d: d.__delitem__("cap"),
        lambda d: d.__ior__({"cap": 3}),
        lambda d: d.popitem(),
    ],
)
def test_a_frozen_dictionary_stays(change: Callable[[dict[str, Any]], object]) -> None:
    """No method of a dictionary changes it; copies and pickles are frozen too."""
    found = FrozenDict(cap=2)
    with pytest.raises(TypeError, match="do not change"):
        change(found)
    assert found == {"cap": 2}
    assert type(copy.deepcopy(found)) is type(pickle.loads(pickle.dumps(found))) is FrozenDict
