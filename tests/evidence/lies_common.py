"""Lies about any manifest: what it guarantees, and what kind of file it is."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.evidence.lies_kit import add, at, drop, get, put, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.evidence.lies_kit import Change, Document, Lies

# Where a manifest says its epsilon and delta.
_EPSILONS, _DELTAS = ("plan.claims.epsilon",), ("plan.claims.delta",)


def _everywhere(name: str, paths: tuple[str, ...], to: Callable[[Fraction], Fraction]) -> Change:
    """Another loss in the guarantee and in all that it must agree with."""

    def change(document: Document) -> None:
        new = to(Fraction(document["guarantee"][name]))
        for path in (f"guarantee.{name}", *paths):
            try:
                holder, key = at(document, path)
                _ = holder[key]
            except (KeyError, TypeError):
                continue
            holder[key] = str(new)
        shown = f"{name}_at_most"
        if shown in document["guarantee"]:
            document["guarantee"][shown] = _up(new)

    return change


def _up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _halved(old: Any) -> str:  # noqa: ANN401
    return str(Fraction(old) / 2)


GUARANTEE: Lies = {
    "half of epsilon in the guarantee": put("guarantee.epsilon", to=_halved),
    "half of epsilon in the claims": put("plan.claims.epsilon", to=_halved),
    "half of epsilon everywhere": _everywhere("epsilon", _EPSILONS, lambda x: x / 2),
    "a thousandth less epsilon everywhere": _everywhere(
        "epsilon", _EPSILONS, lambda x: x * Fraction(999, 1000)
    ),
    "a billionth less epsilon everywhere": _everywhere(
        "epsilon", _EPSILONS, lambda x: x * (1 - Fraction(1, 10**9))
    ),
    "no epsilon at all": _everywhere("epsilon", _EPSILONS, lambda _: Fraction(0)),
    "a negative epsilon": _everywhere("epsilon", _EPSILONS, lambda x: -x),
    "an epsilon that is not in lowest terms": put(
        "guarantee.epsilon",
        to=lambda x: f"{2 * Fraction(x).numerator}/{2 * Fraction(x).denominator}",
    ),
    "an epsilon with a space": put("guarantee.epsilon", to=lambda x: f" {x}"),
    "an epsilon with a sign": put("guarantee.epsilon", to=lambda x: f"+{x}"),
    "an epsilon as a number": put("guarantee.epsilon", to=lambda x: float(Fraction(x))),
    "an epsilon in other digits": put(
        "guarantee.epsilon", to=lambda x: x.translate({48 + d: 0x660 + d for d in range(10)})
    ),
    "an epsilon with an exponent": put("guarantee.epsilon", to="1e-1"),
    "an infinite epsilon at most": put("guarantee.epsilon_at_most", to=1e308),
    "an epsilon at most that is rounded down": put(
        "guarantee.epsilon_at_most", to=lambda x: math.nextafter(x, 0)
    ),
    "half of epsilon at most": put("guarantee.epsilon_at_most", to=times(0.5)),
    "an epsilon at most as a text": put("guarantee.epsilon_at_most", to=str),
    "half of delta everywhere": _everywhere("delta", _DELTAS, lambda x: x / 2),
    "no delta in the guarantee": put("guarantee.delta", to="0"),
    "no delta everywhere": _everywhere("delta", _DELTAS, lambda _: Fraction(0)),
    "a delta at most of nothing": put("guarantee.delta_at_most", to=0.0),
    "another unit": put("guarantee.unit", to="record"),
    "a unit of more than a user": put("guarantee.unit", to="household"),
    "neighbours by presence": put("guarantee.neighbours", to="presence: one user more or less"),
    "another kind of privacy": put("guarantee.privacy", to="perfect secrecy"),
    "a kind of privacy that claims a smaller epsilon": put(
        "guarantee.privacy", to=lambda x: f"{x} with epsilon 0.01"
    ),
    "a unit that claims a smaller epsilon": put("guarantee.unit", to="user (epsilon 0.01)"),
    "pure privacy": put("guarantee.privacy", to="pure differential privacy"),
    "no privacy": drop("guarantee.privacy"),
    "no unit": drop("guarantee.unit"),
    "a second guarantee": add("guarantee", "note", "epsilon is in fact 0.01"),
    "no guarantee": drop("guarantee"),
    "a list of guarantees": put("guarantee", to=lambda x: [x]),
    "clusters that cost nothing": put("plan.clustering_epsilon", to="1/100"),
    "a noise that can be repeated": put("simulation", to=True),
    "noise that may be repeatable": put("simulation", to=None),
    "noise that is not said to be real": drop("simulation"),
    "noise that is real by a number": put("simulation", to=0),
    "a name that claims a smaller epsilon": put("name", to="epsilon 0.01"),
    "no name": put("name", to=""),
    "a name that is no text": put("name", to=2013),
    "another request": put("request", to="0" * 64),
    "no request": put("request", to=""),
    "a request in capitals": put("request", to=str.upper),
    "half a request": put("request", to=lambda x: x[:32]),
    "another confidence": put("confidence", to=0.99),
    "a confidence of more than one": put("confidence", to=1.5),
    "a confidence as a text": put("confidence", to="0.95"),
    "an older schema": put("schema", to=lambda x: x.rpartition("/")[0] + "/0"),
    "a schema of another kind": put("schema", to="shoal.occupancy/1"),
    "another kind": put("kind", to=lambda x: "cells" if x != "cells" else "mean"),
    "no kind": drop("kind"),
    "a schema as a list": put("schema", to=lambda x: [x]),
    "a plan of another schema": put("plan.schema", to="shoal.plan/1"),
    "an unknown field": add("", "comment", "epsilon is 0.01"),
    "an unknown field of the plan": add("plan", "epsilon", "0.01"),
    "an unknown claim": add("plan.claims", "epsilon_total", "0.01"),
    "an unknown field of the records": add("records", "note", "epsilon is 0.01"),
    "an unknown field of the released": add("results.released", "note", "epsilon is 0.01"),
    "an unknown version": add("versions", "auditor", "epsilon is 0.01"),
    "a version that is no text": put("versions.shoal", to=1),
    "no version of the noise": drop("versions.opendp"),
    "no versions": drop("versions"),
    "a description of other records": put("plan.source", to={"value": "salary"}),
}


def _text(document: Document) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _twice(path: str, other: str) -> Callable[[Document], bytes]:
    """The same key twice in one object, with two values: readers take either."""

    def write(document: Document) -> bytes:
        value = get(document, path)
        key = path.rpartition(".")[2]
        kept = f'"{key}":{json.dumps(value, ensure_ascii=False, separators=(",", ":"))}'.encode()
        text = _text(document)
        if kept not in text:
            raise KeyError(path)
        return text.replace(kept, f'"{key}":{other},'.encode() + kept, 1)

    return write


def _all(*parts: Callable[[bytes], bytes]) -> Callable[[Document], bytes]:
    def write(document: Document) -> bytes:
        text = _text(document)
        for part in parts:
            text = part(text)
        return text

    return write


FILES: dict[str, Callable[[Document], bytes]] = {
    "epsilon twice": _twice("guarantee.epsilon", '"1/100"'),
    "epsilon at most twice": _twice("guarantee.epsilon_at_most", "0.01"),
    "the unit twice": _twice("guarantee.unit", '"household"'),
    "simulation twice": _twice("simulation", "true"),
    "the name twice": _twice("name", '"june"'),
    "the request twice": _twice("request", '"' + "0" * 64 + '"'),
    "a literal that is no number": _all(
        lambda t: t.replace(b'"confidence":0.95', b'"confidence":NaN')
    ),
    "an infinite literal": _all(lambda t: t.replace(b'_at_most":', b'_at_most":-Infinity,"x":', 1)),
    "a byte order mark": _all(lambda t: b"\xef\xbb\xbf" + t),
    "UTF-16": _all(lambda t: t.decode().encode("utf-16")),
    "Latin-1": _all(lambda t: t.replace(b'"may"', '"mäy"'.encode("latin-1"))),
    "a lone surrogate": _all(lambda t: t.replace(b'"may"', b'"\\ud800"')),
    "an escaped letter": _all(lambda t: t.replace(b'"may"', b'"m\\u0061y"')),
    "spaces": _all(lambda t: t.replace(b":", b": ")),
    "a newline at the end": _all(lambda t: t + b"\n"),
    "something behind the end": _all(lambda t: t + b" {}"),
    "a zero byte at the end": _all(lambda t: t + b"\x00"),
    "the end cut off": _all(lambda t: t[:-1]),
    "keys in another order": lambda m: json.dumps(
        dict(sorted(m.items(), reverse=True)), separators=(",", ":"), ensure_ascii=False
    ).encode(),
    "a number written otherwise": _all(lambda t: t.replace(b"0.95", b"9.5e-1", 1)),
    "a number with more digits": _all(lambda t: t.replace(b"0.95", b"0.950", 1)),
    "a number with four thousand digits": _all(
        lambda t: t.replace(b'"simulation":false', b'"simulation":' + b"9" * 4000)
    ),
    "a very deep list": _all(
        lambda t: t.replace(b'"simulation":false', b'"simulation":' + b"[" * 10**5 + b"]" * 10**5)
    ),
    "a list of manifests": _all(lambda t: b"[" + t + b"]"),
    "nothing": _all(lambda _: b""),
    "a comment": _all(lambda t: b"/* epsilon 0.01 */" + t),
}
