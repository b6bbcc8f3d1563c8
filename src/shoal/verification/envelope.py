"""What manifests of all families have in common, for the second opinion."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from shoal import documents
from shoal.verification.strict import printable_name, rational, real, release_name, text, unit
from shoal.verification.verdict import Check

SCHEMA = "shoal.manifest/4"
CONFIDENCE = 0.95
_PARTS = {
    *("schema", "kind", "name", "records", "request", "simulation", "guarantee", "plan"),
    *("results", "confidence", "versions"),
}
_GUARANTEE = {
    *("privacy", "unit", "neighbours", "publishes_values"),
    *("epsilon", "epsilon_at_most", "delta", "delta_at_most"),
}
_VERSIONS = {"shoal", "opendp", "python"}


@dataclass(frozen=True)
class Words:
    """How a manifest must word what it guarantees.

    Attributes:
        privacy: The kind of differential privacy.
        neighbours: What neighbouring data sets differ in.
        publishes_values: Whether somebody's value may stand in the results as it is.
    """

    privacy: str
    neighbours: str
    publishes_values: bool = False


def guarantee_holds(manifest: documents.Document, words: Words) -> bool:
    """Whether the guarantee says so in words, and shows no loss below the one it states."""
    stated = manifest["guarantee"]
    return (
        manifest["schema"] == SCHEMA
        and manifest["confidence"] == CONFIDENCE
        and stated["privacy"] == words.privacy
        and stated["neighbours"] == words.neighbours
        and stated["publishes_values"] is words.publishes_values
        and unit(stated["unit"]) != ""
        and rational(stated["delta"]) < 1
        and all(_rounded_up(stated, name) for name in ("epsilon", "delta"))
    )


def shown(manifest: documents.Document) -> str:
    """Epsilon and delta of the guarantee, as a verdict shows them."""
    guarantee = manifest["guarantee"]
    epsilon, delta = real(guarantee["epsilon_at_most"]), real(guarantee["delta_at_most"])
    return f"epsilon {epsilon:.6g}, delta {delta:.6g}"


def genuine(manifest: documents.Document) -> Check:
    """Whether the noise was the operating system's."""
    held = manifest["simulation"] is False
    found = "stated" if held else "a simulation, not private"
    return Check("noise of the operating system", held, found)


def request_key(manifest: documents.Document, asked: documents.Document, *names: object) -> Check:
    """Whether the request is the digest of what was asked for, and names are such.

    A column is named as its file has it, with blanks wherever it has them: of its name no more is
    asked than that it is short and printable. The name of a release is shoal's own.

    Args:
        manifest: The document.
        asked: The parts of its plan that were asked for.
        *names: Names of columns.
    """
    whose = manifest["guarantee"]["unit"]
    question = documents.digest({"plan": asked, "records": manifest["records"], "unit": whose})
    key = documents.digest({"question": question, "name": manifest["name"]})
    named = release_name(manifest["name"]) and all(map(printable_name, names))
    return Check("request key", named and key == manifest["request"], key[:16])


def no_other_parts(
    manifest: documents.Document, parts: Iterable[tuple[documents.Document, set[str]]]
) -> list[Check]:
    """A failed check if a part of a manifest has other keys than it must have; else none.

    Args:
        manifest: The document.
        parts: Parts of its plan, records and results, and the keys of each.
    """
    versions = manifest["versions"]
    common = (
        (manifest, _PARTS), (manifest["guarantee"], _GUARANTEE), (versions, _VERSIONS)
    )  # fmt: skip
    held = all(part.keys() == keys for part, keys in (*common, *parts))
    if held and all(map(text, versions.values())):
        return []
    return [Check("no other parts", holds=False, found="something is added or missing")]


def _rounded_up(stated: documents.Document, name: str) -> bool:
    """Whether the number shown is the least float that does not understate the fraction."""
    exact, shown_number = rational(stated[name]), real(stated[f"{name}_at_most"])
    return Fraction(math.nextafter(shown_number, -math.inf)) < exact <= Fraction(shown_number)
