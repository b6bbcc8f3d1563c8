"""The recount agrees with every true manifest, and with no better one."""

import copy
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from shoal.documents import pack_integers, unpack_integers
from shoal.errors import DocumentError
from shoal.verification.recount import recount
from tests.support import specimens
from tests.support.specimens import Manifest


def accepted(lie: Callable[[Manifest], Iterator[Manifest]], kind: str = "") -> list[str]:
    """Specimens of which a changed manifest is not refused, or that have none."""
    found = []
    for name, manifest in specimens.each(kind):
        lies = list(lie(manifest))
        if not lies or not all(recount(each) for each in lies):
            found.append(name)
    return found


def changed(manifest: Manifest, *path: Any, to: Any) -> Manifest:
    """A copy with another entry at a path."""
    copied = copy.deepcopy(manifest)
    place: Any = copied
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = to
    return copied


def less(manifest: Manifest, name: str, part: Fraction) -> Manifest:
    """A copy that states a part of epsilon or delta, everywhere alike."""
    number = Fraction(manifest["guarantee"][name]) * part
    copied = changed(manifest, "guarantee", name, to=str(number))
    shown = float(number)
    shown = shown if shown >= number else math.nextafter(shown, math.inf)
    copied["guarantee"][f"{name}_at_most"] = shown
    copied["plan"]["claims"][name] = str(number)
    return copied


def test_all_specimens_agree() -> None:
    """Every method, mechanism, statistic and kind of question: seconds, as all are released."""
    assert {
        name: recount(manifest) for name, manifest in specimens.each() if recount(manifest)
    } == {}
    assert len(specimens.manifests()) > 60


def test_no_loss_is_stated_too_small() -> None:
    """A millionth less, everywhere alike; of what has no epsilon, of delta."""

    def lie(manifest: Manifest) -> Iterator[Manifest]:
        name = "delta" if manifest["guarantee"]["epsilon"] == "0" else "epsilon"
        yield less(manifest, name, 1 - Fraction(1, 10**6))

    assert accepted(lie) == []


def test_no_delta_is_stated_too_small() -> None:
    """A thousandth less delta, of what has one."""

    def lie(manifest: Manifest) -> Iterator[Manifest]:
        yield less(manifest, "delta", Fraction(999, 1000))

    with_delta = [n for n, each in specimens.each() if each["guarantee"]["delta"] != "0"]
    assert len(with_delta) > 8
    assert not {*with_delta} & {*accepted(lie)}


def test_the_loss_is_shown_rounded_upwards_and_claimed_alike() -> None:
    """The double below is refused, however near; so is another claim."""

    def lie(manifest: Manifest) -> Iterator[Manifest]:
        shown = manifest["guarantee"]["epsilon_at_most"]
        yield changed(manifest, "guarantee", "epsilon_at_most", to=math.nextafter(shown, -1))
        yield changed(manifest, "plan", "claims", "epsilon", to="1/1000")

    assert accepted(lie) == []


def shorter(ends: list[float]) -> list[float]:
    """An interval that is shorter by a hundredth."""
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    return [middle - 0.99 * half, middle + 0.99 * half]


def another_bin(manifest: Manifest) -> Manifest:
    """The first bin has one unit more."""
    first = manifest["results"]["bins"]["rows"][0][0]
    return changed(manifest, "results", "bins", "rows", 0, 0, to=first + 1)


def intervals(manifest: Manifest) -> Iterator[tuple[Any, ...]]:
    """Paths to all intervals of a manifest; of cells, one a statistic."""
    results = manifest["results"]
    if manifest["kind"] == "cells":
        names = [each["statistic"] for each in results]
        yield from (("results", names.index(name), "interval") for name in {*names})
    if manifest["kind"] == "distributions":
        yield from (("results", "parts", part, 0, "interval") for part in results["parts"])
    if manifest["kind"] == "mean":
        yield "results", "interval"
    for at, each in enumerate(results.get("estimates", ()) if isinstance(results, dict) else ()):
        if manifest["kind"] in ("questions", "bounds"):
            yield "results", "estimates", at, "interval"
            continue
        # With three arms some cells have one unit, and are taken together; noise of histograms and
        # assigned groups are recounted in values and losses alone.
        whole = manifest["kind"] != "histogram" and not each["groups"]
        several = len(each["clusters"]["names"]) > 1
        for name, known in (
            ("super_population", several or whole),
            ("finite_population", whole and len(results["estimates"]) == 1),
        ):
            if known:
                yield "results", "estimates", at, name, "interval"


def test_no_interval_is_stated_too_short() -> None:
    """A hundredth shorter."""

    def lie(manifest: Manifest) -> Iterator[Manifest]:
        for path in intervals(manifest):
            place: Any = manifest
            for part in path:
                place = place[part]
            if place[0] is not None:
                yield changed(manifest, *path, to=shorter(place))
        # Intervals of bins have a test of their own.
        if manifest["kind"] == "distributions" and manifest["results"]["bins"]:
            yield another_bin(manifest)

    assert accepted(lie) == []


def test_no_gap_is_stated_too_small() -> None:
    """Half of it, of cells; of a table, a bound that is nearer to the variance by half."""

    def lie(manifest: Manifest) -> Iterator[Manifest]:
        gap = manifest["plan"]["claims"]["gap"]
        yield changed(manifest, "plan", "claims", "gap", to=gap and gap / 2)

    def tables(manifest: Manifest) -> Iterator[Manifest]:
        claims = manifest["plan"]["claims"]
        bound = (claims["bound"] + claims["variance"]) / 2
        yield changed(manifest, "plan", "claims", "bound", to=bound)

    with_gap = [n for n, each in specimens.each("cells") if each["plan"]["claims"]["gap"]]
    assert len(with_gap) > 8
    assert not {*with_gap} & {*accepted(lie, "cells")}
    assert accepted(tables, "trial: best_table") == []


def test_no_value_error_or_bound_is_another() -> None:
    """Values of all kinds by a hundredth; errors and lower bounds of cells."""

    def lie(manifest: Manifest) -> Iterator[Manifest]:
        results = manifest["results"]
        places = {"cells": (0,), "mean": ()}
        if manifest["kind"] == "distributions":
            if not results["parts"]:
                yield another_bin(manifest)
                return
            places["distributions"] = ("parts", [*results["parts"]][-1], 0)
        path = ("results", *places.get(manifest["kind"], ("estimates", 0)), "value")
        place: Any = results
        for part in path[1:]:
            place = place[part]
        yield changed(manifest, *path, to=place + max(1e-3, abs(place) / 100))
        if manifest["kind"] == "cells":
            claims = manifest["plan"]["claims"]
            for name, factor in (
                ("bias_bound", 0.99),
                ("worst_case_error", 0.99),
                ("lower_bound", 2),
            ):
                if claims[name]:
                    less = [claims[name][0] * factor, *claims[name][1:]]
                    yield changed(manifest, "plan", "claims", name, to=less)

    assert accepted(lie) == []


def test_no_unit_bin_edge_or_band_is_another() -> None:
    """A unit that costs more, a bin of one more, another edge, ends that are too near."""

    def lie(manifest: Manifest) -> Iterator[Manifest]:
        units = unpack_integers(manifest["plan"]["bins"]["units"], "units")
        heavier = pack_integers(units * 2)
        yield changed(manifest, "plan", "bins", "units", to=heavier)
        drawn = manifest["results"]["bins"]
        yield another_bin(manifest)
        yield changed(manifest, "results", "bins", "edges", 0, to=drawn["edges"][0] + 1024)
        for at, row in enumerate(manifest["results"]["rows"]):
            if row["statistic"] != "mean" and row["high"][0] > row["value"][0] + 0.01:
                yield changed(manifest, "results", "rows", at, "high", 0, to=row["value"][0])

    assert accepted(lie, "distributions: bins") == []


def test_what_is_no_manifest_is_an_error_of_ours() -> None:
    """Whatever is missing or of another type."""
    manifest = dict(specimens.each("cells: balanced"))["cells: balanced"]
    for path, value in [
        (("kind",), "nothing"),
        (("plan", "counts", "cell", "length"), 1),
        (("plan", "counts", "cell", "data"), "AAAA"),
        (("plan", "decision", "status"), []),
        (("guarantee", "epsilon"), "1/0"),
        (("results", 0, "steps"), None),
    ]:
        with pytest.raises(DocumentError, match="be recomputed"):
            recount(changed(manifest, *path, to=value))
    with pytest.raises(DocumentError):
        recount(json.loads("[]"))
