"""Plans on disk: the same plan comes back, and a changed one does not."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal import documents
from shoal.errors import DocumentError, InputError
from tests.support import occupancies

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[dict[str, Any]], object]

pytestmark = pytest.mark.unit


def plan(**wanted: Any) -> shoal.Plan:
    """A plan that leaves something out."""
    wanted = {"bounds": (-5, 50), "epsilon": "3", **wanted}
    occupancy = occupancies.sparse(5)
    return shoal.plan(
        occupancy,
        min_users=int(occupancy.users_per_cell.min()) + 1,
        **{"method": "balanced", **wanted},
    )


@pytest.mark.parametrize("wanted", [{}, {"method": "equalised"}, {"weights": {"0": 3}}])
def test_saved_and_loaded_plans_are_equal(tmp_path: Path, wanted: dict[str, Any]) -> None:
    """Every field survives, and so does the text."""
    one = plan(**wanted)
    one.save(tmp_path / "plan.json")
    other = shoal.Plan.load(tmp_path / "plan.json")
    assert other.to_document() == one.to_document()
    assert str(other) == str(one)


def _scale(document: dict[str, Any]) -> None:
    document["numbers"]["relative_scale"][0] /= 2


def _claim(name: str, factor: float) -> Change:
    def change(document: dict[str, Any]) -> None:
        claims = document["claims"]
        old = claims[name]
        claims[name] = [factor * x for x in old] if isinstance(old, list) else factor * old

    return change


@pytest.mark.parametrize(
    "change",
    [
        _scale,
        _claim("worst_case_error", 0.99),
        _claim("bias_bound", 0.5),
        _claim("lower_bound", 1.1),
        _claim("gap", 0.1),
        lambda d: d["claims"].update(epsilon="1/10"),
        lambda d: d["claims"].pop("gap"),
        lambda d: d.update(bounds=[0, 50]),
        lambda d: d.update(bounds="wide"),
        lambda d: d.update(status=[]),
        lambda d: d.update(tick_bits=19),
        lambda d: d.update(neighbours="presence"),
        lambda d: d.update(claims=None),
        lambda d: d.pop("numbers"),
        lambda d: d["request"].update(method="magic"),
        lambda d: d["request"].update(nonsense=1),
        lambda d: d["numbers"].update(lattice_bits=5),
        lambda d: d["numbers"].update(relative_scale=[1e308]),
        lambda d: d["occupancy"].update(fingerprint="0" * 64),
        lambda d: d["occupancy"]["count"].update(data="AAAA"),
        lambda d: d["occupancy"]["cells"].update(columns=[]),
        lambda d: d["duals"].update(dual=[1]),
        lambda d: d.update(schema="shoal.plan/9"),
        lambda d: d.update(extra="thing"),
        lambda d: d["request"].update(epsilon="1e99999999"),
        lambda d: d["request"].update(epsilon="1/3"),
        lambda d: d["request"].update(epsilon="2999/1000"),
        lambda d: d.update(tick_bits=10**10),
        lambda d: d["numbers"].update(lattice_bits=60),
    ],
)
def test_a_changed_plan_is_refused(tmp_path: Path, change: Change) -> None:
    """Scales, claims, counts, rules: nothing can be changed by hand unnoticed."""
    path = tmp_path / "plan.json"
    document = plan().to_document()
    change(document)
    path.write_bytes(documents.canonical_bytes(document))
    with pytest.raises(DocumentError):
        shoal.Plan.load(path)


@pytest.mark.parametrize("name", ["worst_case_error", "bias_bound"])
def test_claims_about_narrow_bounds_are_refused(tmp_path: Path, name: str) -> None:
    """No unit is so large that a false claim is too small to see."""
    document = plan(bounds=(0, 1e-13)).to_document()
    path = tmp_path / "plan.json"
    path.write_bytes(documents.canonical_bytes(document))
    assert shoal.Plan.load(path).to_document() == document
    for factor in (0.0, 1e-9, 1.01):
        changed = copy.deepcopy(document)
        _claim(name, factor)(changed)
        path.write_bytes(documents.canonical_bytes(changed))
        with pytest.raises(DocumentError):
            shoal.Plan.load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 1}', "\x00\x01", "[" * 9999])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    """Not JSON, not an object, or another schema."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match="plan"):
        shoal.Plan.load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """The message names the path."""
    with pytest.raises(DocumentError, match=r"nowhere.json"):
        shoal.Plan.load(tmp_path / "nowhere.json")


def test_the_text_of_a_plan_says_what_matters() -> None:
    """Loss, cells, errors, the paper's accounting, dear users, the gap, what is left out."""
    text = str(plan())
    for part in ("balanced plan", "epsilon 3 per user", "of the standard deviation of the values",
                 "accounting of Rameshwar and Tandon", "the user with the largest loss is in",
                 "and loses epsilon 3", "certified gap", "left out, too few users"):  # fmt: skip
        assert part in text
    assert "\n" not in repr(plan())


def test_prices_of_nothing_prove_nothing(tmp_path: Path) -> None:
    """A balanced plan whose dual variables were set to 0 is refused in one line."""
    document = plan().to_document()
    document["duals"]["dual"] = [0.0] * len(document["duals"]["dual"])
    (tmp_path / "plan.json").write_bytes(documents.canonical_bytes(document))
    with pytest.raises(DocumentError, match="damaged"):
        shoal.Plan.load(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("method", "parameter"),
    [
        ("levy", "radius"),
        ("levy", "bins"),
        ("quantile", "high_rank"),
        ("array_averaging", "cap"),
        ("worst_case_optimal", "threshold"),
        ("clip_user", "cap"),
    ],
)
def test_parameters_of_another_request_are_refused(
    tmp_path: Path, method: str, parameter: str
) -> None:
    """A changed radius, rank, cap or threshold is not carried out."""
    path = tmp_path / "plan.json"
    made = shoal.plan(
        occupancies.sparse(5), bounds=(-5, 50), epsilon=30, method=method, uninformative="keep"
    )
    made.save(path)
    assert shoal.Plan.load(path).epsilon == made.epsilon
    document = made.to_document()
    found = document["mechanism"]["parameters"][parameter]
    found[0] += 1 if found[0] == 1 else -1
    path.write_bytes(documents.canonical_bytes(document))
    with pytest.raises(DocumentError):
        shoal.Plan.load(path)


def test_a_type_of_keys_has_one_spelling(tmp_path: Path) -> None:
    """A type in other letters is another document."""
    document = plan().to_document()
    column = document["occupancy"]["cells"]["columns"][0]
    column["type"] = column["type"].upper()
    path = tmp_path / "plan.json"
    path.write_bytes(documents.canonical_bytes(document))
    with pytest.raises(DocumentError):
        shoal.Plan.load(path)


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
