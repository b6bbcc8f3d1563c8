"""What every release has, whatever its family: fresh, delivered again, and loaded from a file."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal import trials, unbiased
from shoal.documents import canonical_bytes
from shoal.errors import DocumentError, InputError
from shoal.privacy.budget import round_up
from shoal.verification.recount import recount
from tests.support.releases import releases

KINDS: dict[str, Any] = {
    "cell mean": shoal.Release,
    "trial": trials.Release,
    "unbiased mean": unbiased.UnbiasedEstimate,
}


def said(found: Any) -> list[object]:
    """All that a release tells its reader, besides where it is booked."""
    if isinstance(found, shoal.Release):
        own: list[object] = [found.table().to_pylist()]
    elif isinstance(found, trials.Release):
        own = [found.table().to_pylist(), str(found.estimate())]
    else:
        own = [found.value, found.interval, found.sentence]
    return [found.record, found.epsilon, found.delta, found.simulated, own]


@pytest.mark.parametrize("family", KINDS)
def test_a_loaded_release_says_what_the_fresh_one_said(family: str, tmp_path: Path) -> None:
    """Results that were drawn just now are those that its manifest is read as."""
    fresh: Any = releases()[family]()
    assert fresh.drawn is not None
    path = tmp_path / "manifest.json"
    fresh.write_record(path)
    loaded = KINDS[family].load(path)
    assert (loaded.drawn, loaded.known_plan, loaded.loaded) == (None, None, True)
    assert said(loaded) == said(fresh)
    assert shoal.verify(path).holds


@pytest.mark.parametrize("family", KINDS)
def test_a_manifest_is_loaded_by_the_class_of_its_kind(family: str, tmp_path: Path) -> None:
    """Another family's manifest is refused in one line."""
    path = tmp_path / "manifest.json"
    made: Any = releases()[family]()
    made.write_record(path)
    for other, kind in KINDS.items():
        if other != family:
            with pytest.raises(DocumentError, match="manifest is of the kind"):
                kind.load(path)


@pytest.mark.parametrize("family", KINDS)
def test_a_loss_that_is_stated_too_small_is_refused(family: str, tmp_path: Path) -> None:
    """By a millionth, in one place or in all: when it is loaded, verified and recounted."""
    made: Any = releases()[family]()
    true, path = json.loads(made.document), tmp_path / "manifest.json"
    assert recount(true) == []
    for part in ("epsilon", "delta") if true["guarantee"]["delta"] != "0" else ("epsilon",):
        document = json.loads(made.document)
        less = Fraction(document["guarantee"][part]) * (1 - Fraction(1, 10**6))
        changed = {part: str(less), f"{part}_at_most": round_up(less)}
        for place in (document["plan"]["claims"], document["guarantee"]):
            place |= {name: changed[name] for name in changed.keys() & place.keys()}
            path.write_bytes(canonical_bytes(document))
            with pytest.raises(DocumentError, match="changed"):
                KINDS[family].load(path)
            assert not shoal.verify(path).holds
            assert recount(document) != []


# What only plans and releases of some statistics have.
OF_PLANS = {
    "typical_error": {"sd": 3.0},
    "forecast": {},
    "compare": {"methods": ["midpoint"], "repetitions": 2},
    "frontier": {"methods": ["balanced"], "epsilons": [1]},
}
OF_RELEASES = {
    "difference": {"cell": "a", "other": "b"},
    "quantiles": {"levels": 0.5},
    "histogram": {},
}


@pytest.mark.parametrize(
    ("counts", "statistics", "works"),
    [
        ("public", ["mean"], {*OF_PLANS, "picture", "difference"}),
        ("public", ["median"], {"quantiles", "histogram"}),
        ("public", ["sum", "std"], set()),
        ("private", ["mean"], set()),
    ],
)
def test_what_a_plan_or_release_lacks_is_refused_in_words(
    counts: Any, statistics: list[str], works: set[str], tmp_path: Path
) -> None:
    """Whatever the documentation shows works, or says why not: there is no AttributeError."""
    table = pa.table({"who": [*range(200)], "at": ["a", "b"] * 100, "x": [3.0, 9.0] * 100})
    known: Any = {"user": "who", "value": "x", "by": "at", "bounds": (0, 10), "counts": counts}
    records = shoal.Records(table, **known)
    more: Any = {"keys": {"at": ["a", "b"]}, "users": 200} if counts == "private" else {}
    plan: Any = shoal.plan(records, epsilon=9, statistics=statistics, **more)
    release = plan.release(records, noise=shoal.Simulated(1))
    asked = {name: (getattr(plan, name), given) for name, given in OF_PLANS.items()}
    asked |= {name: (getattr(release, name), given) for name, given in OF_RELEASES.items()}
    asked["picture"] = (shoal.picture, {"subject": plan, "path": tmp_path / "p.png"})
    for name, (method, given) in asked.items():
        if name in works:
            method(**given)
            continue
        with pytest.raises(InputError, match=r"works with|drawn|have a picture"):
            method(**given)
