"""Keys that are found: what a user adds to both draws, and which keys are released."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import DocumentError, InputError
from shoal.planning import plan
from shoal.presence.found import found_keys
from shoal.presence.plan import Plan, Release
from shoal.publishing import publish
from shoal.theory.key_threshold import MOST_KEYS, counted, public_order, selection
from shoal.verification.recount import recount

KEYS = 600
NAMES = [f"key {at}" for at in range(KEYS)]
CHOSEN = selection(2.0, 1e-6)


@dataclass
class Prescribed:
    """Says what every key has after noise, and keeps what it had before."""

    first: int
    second: int = 0
    asked: list[list[int]] = field(default_factory=list)

    def add_gaussian(self, steps: list[int], bits: int, draw: int) -> list[int]:
        """The same number for every key."""
        assert bits == CHOSEN.bits
        self.asked.append(list(map(int, steps)))
        return [self.first if len(self.asked) == 1 else self.second] * len(steps)


def _pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Thirty users with 1 to 400 of 600 keys each."""
    rng = np.random.default_rng(seed)
    parts = [
        (np.full(many, at), rng.choice(KEYS, many, replace=False))
        for at, many in enumerate(rng.integers(1, 401, 30))
    ]
    user, key = zip(*parts, strict=True)
    return np.concatenate(user), np.concatenate(key)


def _weights(user: np.ndarray, key: np.ndarray) -> list[dict[int, int]]:
    """What each key has in both draws, by its place in the public order; all of them stay."""
    noise = Prescribed(CHOSEN.stay)
    found_keys(user, key, NAMES, CHOSEN, noise)  # type: ignore[arg-type]
    place = public_order(NAMES)[key]
    there = np.unique(place[counted(user, place)]).tolist()
    return [dict(zip(there, each, strict=True)) for each in noise.asked]


@pytest.mark.parametrize("seed", range(4))
def test_a_user_moves_keys_of_others_by_at_most_what_draws_cost(seed: int) -> None:
    """P-REPLAY of keys: the l2 norm is at most K, and nearly K for keys that others have."""
    user, key = _pairs(seed)
    without = int(np.random.default_rng(seed).integers(30))
    rest = user != without
    whole = _weights(user, key)
    less = _weights(user[rest], key[rest])
    for most, before, after in zip((CHOSEN.first, CHOSEN.second), whole, less, strict=True):
        assert after.keys() <= before.keys()
        moves = [before[each] - after[each] for each in after]
        assert min(moves) >= 0
        norm = sum(each**2 for each in moves)
        assert 0.9 * most**2 < norm <= most**2


def test_keys_are_found_in_either_draw_and_sorted() -> None:
    """All at once, all by the second draw, or none; a user has its first 256 keys by the hash."""
    user = np.zeros(400, dtype=np.int64)
    key = np.arange(400)
    kept = sorted(NAMES[at] for at in np.flatnonzero(public_order(NAMES[:400]) < MOST_KEYS))

    def found(first: int, second: int) -> list[str]:
        noise = Prescribed(first, second)
        return found_keys(user, key, NAMES[:400], CHOSEN, noise)  # type: ignore[arg-type]

    assert found(CHOSEN.found_first, 0) == kept
    assert found(CHOSEN.stay, CHOSEN.found_second) == kept
    assert found(CHOSEN.found_first - 1, CHOSEN.found_second - 1) == []
    assert found(CHOSEN.stay - 1, CHOSEN.found_second) == []


def test_sums_of_weights_are_exact_beyond_64_bits() -> None:
    """A sum that wraps around would let one user decide whether a key is found."""
    noise = Prescribed(0)
    chosen = CHOSEN._replace(first=2**62)
    nobody = np.zeros(3, dtype=np.int64)
    found_keys(np.arange(3), nobody, ["a"], chosen, noise)  # type: ignore[arg-type]
    assert noise.asked[0] == [3 * 2**62]


@pytest.mark.parametrize(("epsilon", "delta"), [(4, "1e-12"), (8, "1e-11"), (1, "1e-15")])
def test_squares_of_weights_beyond_63_bits_are_accounted(
    epsilon: int, delta: str, tmp_path: Path
) -> None:
    """And half of the delta is the same number in a plan and in its document."""
    made: Any = plan(_records(_searches()), **ASKED | {"epsilon": epsilon, "delta": delta})
    assert made.exact_loss.within(made.loss)
    made.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").to_document() == made.to_document()


def test_texts_are_found_as_they_are() -> None:
    """One with a zero at its end, and one so long that an array of such texts fits no memory."""
    names = ["a\0"] * 2000 + ["x" * 10**6] + [f"k{at}" for at in range(2000)]
    who = [*range(2000), 0, *range(2000)]
    table = pa.table({"who": who, "word": names, "seconds": np.ones(len(who))})
    done = plan(_records(table), **ASKED).release(_records(table), noise=shoal.Simulated(1))
    assert done.cells.column("word").to_pylist() == ["a\0"]


def test_nobody_has_no_key() -> None:
    """An empty table has the same two draws, of no number."""
    nobody = np.zeros(0, dtype=np.int64)
    noise = Prescribed(0)
    assert found_keys(nobody, nobody, [], CHOSEN, noise) == []  # type: ignore[arg-type]
    assert noise.asked == [[], []]


ASKED: dict[str, Any] = {
    "delta": "1e-6",
    "users": 3000,
    "epsilon": 4,
    "statistics": ["users", "mean"],
}


def _searches() -> pa.Table:
    """Six words of 3,000 people, and one word of each of 50 people that nobody else has."""
    rng = np.random.default_rng(3)
    word = rng.choice(6, 9000, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01])
    own = [f"secret {at}" for at in range(50)]
    return pa.table(
        {
            "who": [*(f"u{at % 3000}" for at in range(9000)), *(f"u{at}" for at in range(50))],
            "word": [*(f"word {at}" for at in word), *own],
            "seconds": rng.gamma(2, 5, 9050),
        }
    )


def _records(table: pa.Table) -> shoal.Records:
    return shoal.Records(table, user="who", value="seconds", by="word", bounds=(0, 60))


def test_cells_are_found_answered_and_recounted(tmp_path: Path) -> None:
    """With a ledger that has a delta; the loss is that of all draws, and files say the same."""
    records = _records(_searches())
    made: Any = plan(records, **ASKED)
    assert 0.999 < made.exact_loss.epsilon / 4 <= 1
    assert made.exact_loss.delta == made.loss.delta == Fraction(1, 10**6)
    made.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").to_document() == made.to_document()
    book = shoal.Ledger.create(
        tmp_path / "searches.ledger", epsilon=4, delta="1e-6", privacy_unit="who"
    )
    done = made.release(records, ledger=book, name="may")
    found = done.cells.column("word").to_pylist()
    assert {"word 0", "word 1", "word 2"} <= {*found} <= {f"word {at}" for at in range(6)}
    table = done.to_pandas()
    users = table[table["statistic"] == "users"].set_index("word")["value"]
    assert users["word 0"] == pytest.approx(2350, rel=0.15)
    done.write_manifest(tmp_path / "may.json")
    assert "secret" not in (tmp_path / "may.json").read_text()
    assert shoal.verify(tmp_path / "may.json")
    assert Release.load(tmp_path / "may.json").to_text() == done.to_text()
    guided: Any = plan(records, epsilon=4, like=tmp_path / "may.json")
    assert guided.request.keys == done.cells
    assert not guided.request.delta


def test_cells_of_the_last_release_are_not_looked_for_again(tmp_path: Path) -> None:
    """`shoal publish` takes its cells and its numbers, and needs no delta."""
    pq.write_table(_searches(), tmp_path / "may.parquet")
    records = shoal.Records(
        tmp_path / "may.parquet", user="who", value="seconds", by="word", bounds=(0, 60)
    )
    book = shoal.Ledger.create(tmp_path / "s.ledger", epsilon=9, delta="1e-6", privacy_unit="who")
    first: Any = plan(records, **ASKED, like="last").release(records, ledger=book, name="may")
    first.write_manifest(tmp_path / "may.json")
    done = publish(
        tmp_path / "may.parquet",
        tmp_path / "may.json",
        ledger=book.path,
        name="june",
        output=tmp_path / "june",
    )
    assert done.changes == "the cells are the same"
    assert (done.release.delta, done.release.cells) == (0, first.cells)


def test_found_cells_do_not_depend_on_the_order_of_rows() -> None:
    """Noise is drawn for keys in the order of their hash, and cells are sorted."""
    table = _searches()
    order = np.random.default_rng(1).permutation(table.num_rows)
    made: Any = plan(_records(table), **ASKED)
    whole = made.release(_records(table), noise=shoal.Simulated(1))
    other = made.release(_records(table.take(order)), noise=shoal.Simulated(1))
    assert whole.to_pandas().equals(other.to_pandas())


def test_no_cell_is_an_answer_too() -> None:
    """Three people have no cell in common; what was spent is spent."""
    few = _searches().slice(9000, 3)
    done = plan(_records(few), **ASKED).release(_records(few), noise=shoal.Simulated(1))
    assert done.table().num_rows == 0
    assert "No cell has enough users" in str(done)
    checks = shoal.verify(done.manifest).checks
    assert [each.claim for each in checks if not each.holds] == ["noise of the operating system"]


@pytest.mark.parametrize("changed", [{"found_second": 0.9}, {"found_first": 0.9}, {"second": 2}])
def test_levels_that_are_too_low_are_refused(changed: dict[str, float], tmp_path: Path) -> None:
    """In the plan's document, and by the recount alone."""
    records = _records(_searches())
    made: Any = plan(records, **ASKED)
    numbers = made.selection._asdict()
    wrong = {name: int(numbers[name] * times) for name, times in changed.items()}
    false = replace(made, selection=made.selection._replace(**wrong))
    false.save(tmp_path / "plan.json")
    with pytest.raises(DocumentError):
        Plan.load(tmp_path / "plan.json")
    done = made.release(records, noise=shoal.Simulated(1))
    full = done.manifest | {
        "plan": false.to_document(),
        "results": done.manifest["results"]["results"],
    }
    assert any("finding cells" in each or "too often" in each for each in recount(full))


@pytest.mark.parametrize(
    "wish",
    [{"delta": 0}, {"keys": {"word": ["word 1"]}}, {"delta": 0.5}, {"delta": "1e-16"}],
)
def test_either_cells_or_a_delta_are_given(wish: dict[str, Any]) -> None:
    """Neither, both, or a delta that protects nobody, or finds nothing."""
    with pytest.raises(InputError):
        plan(_records(_searches()), **ASKED | wish)
