"""A plan of records: their counts, bounds and description, and nothing of their values."""

import gc
import pickle
import struct
from pathlib import Path

import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError
from tests.data import kinds

CANARY = 43.15676875


def records(source: object = None, **wanted: object) -> shoal.Records:
    """A value that is found in memory if it is kept."""
    size = 400
    columns = {"who": [*range(size)], "place": [n % 2 for n in range(size)]}
    table = pa.table({**columns, "v": [CANARY] * size})
    given = {"user": "who", "value": "v", "bounds": (0, 100), "by": "place", **wanted}
    return shoal.Records(table if source is None else source, **given, counts="public")


def test_it_is_the_plan_of_their_counts() -> None:
    """With their bounds, ticks and description; none of these may be given beside them."""
    made = records(tick_bits=18)
    plan = shoal.plan(made, epsilon=1)
    described = made.describe()
    by_hand = shoal.plan(made.counts(), bounds=(0, 100), tick_bits=18, source=described, epsilon=1)
    assert plan.to_document() == by_hand.to_document()
    options: tuple[dict[str, object], ...] = (
        {"bounds": (0, 100)},
        {"tick_bits": 18},
        {"source": described},
    )
    for more in options:
        with pytest.raises(InputError, match="together with records"):
            shoal.plan(made, epsilon=1, **more)
    with pytest.raises(InputError, match="counts do not contain the bounds"):
        shoal.plan(made.counts(), epsilon=1)


def test_no_value_is_reached_from_it(tmp_path: Path) -> None:
    """Neither through a pickle nor through any object that it refers to."""
    table = records().source
    for source in (table, kinds.parquet(table, tmp_path), table.to_pandas()):
        made = records(source)
        plan = shoal.plan(made, epsilon=1)
        kept = pickle.dumps(plan)
        for order in "<>":
            assert struct.pack(f"{order}d", CANARY) not in kept
            assert struct.pack(f"{order}i", round(CANARY * 2**20 / 100)) not in kept
        seen: dict[int, object] = {}
        todo: list[object] = [plan]
        while todo:
            each = todo.pop()
            if id(each) not in seen and not isinstance(each, type) and not callable(each):
                seen[id(each)] = each
                todo.extend(gc.get_referents(each))
        assert not any(each is made or each is source or each is table for each in seen.values())
        assert CANARY not in [each for each in seen.values() if isinstance(each, float)]


def test_one_question_however_it_is_spelled_is_charged_once(tmp_path: Path) -> None:
    """Records or their counts, and keys of any width."""
    made, ledger = (
        records(),
        shoal.Ledger.create(tmp_path / "a.ledger", epsilon=9, privacy_unit="who", counts="public"),
    )
    table = made.source
    narrow = records(table.set_column(1, "place", table["place"].cast(pa.int8())))
    counts = made.counts()
    for plan, source in (
        (shoal.plan(made, epsilon=1), made),
        (shoal.plan(counts, bounds=(0, 100), epsilon=1), made),
        (shoal.plan(made, epsilon=1), narrow),
        (shoal.plan(narrow, epsilon="1"), narrow),
    ):
        release = plan.release(source, ledger=ledger, name="May")
    assert release.from_ledger
    assert ledger.spent.epsilon == 1
