"""What a second opinion finds, as a list that tests can look into."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import shoal
from shoal import documents
from shoal.errors import DocumentError

UNSHAPED, DAMAGED = "not of its schema", "damaged"


def failed_claims(manifest: dict[str, Any]) -> list[str]:
    """The claims that do not hold, or why a manifest is refused before any claim is looked at."""
    try:
        verdict = shoal.verify(manifest)
    except DocumentError as error:
        return [UNSHAPED if UNSHAPED in str(error) else DAMAGED]
    return [check.claim for check in verdict.checks if not check.holds]


def request_of(manifest: dict[str, Any]) -> str:
    """The request key that a manifest must have: of what was asked for, records and unit."""
    asked = {k: v for k, v in manifest["plan"].items() if k not in ("claims", "duals")}
    if manifest["kind"] == "trial":
        kept = ("name", "pooled", "asked")
        asked["mechanism"] = {k: v for k, v in asked["mechanism"].items() if k in kept}
    if manifest["kind"] == "questions":
        asked.pop("numbers", None)
    question = documents.digest(
        {"plan": asked, "records": manifest["records"], "unit": manifest["guarantee"]["unit"]}
    )
    return documents.digest({"question": question, "name": manifest["name"]})


def rekey(manifest: dict[str, Any]) -> None:
    """What a careful liar does last: the request key of the changed plan."""
    with suppress(AttributeError):  # nothing was asked for
        manifest["request"] = request_of(manifest)
