"""What a second opinion finds, as a list that tests can look into."""

from __future__ import annotations

from typing import Any

import shoal
from shoal import documents
from shoal.errors import DocumentError

# What is added, missing or of another type is refused before any claim is looked at.
UNSHAPED = (
    *("statistics and noise", "mechanism", "no other parts", "results", "request key"),
    *("guarantee in words", "gap to the best plan"),
)


def failed_claims(manifest: dict[str, Any]) -> list[str]:
    """The claims that do not hold; of a damaged manifest, those that damage may break."""
    try:
        verdict = shoal.verify(manifest)
    except DocumentError:
        return list(UNSHAPED)
    return [check.claim for check in verdict.checks if not check.holds]


def rekey(manifest: dict[str, Any]) -> None:
    """What a careful liar does last: the request key of the changed plan."""
    contents = {k: v for k, v in manifest["plan"].items() if k not in ("claims", "prices")}
    question = documents.digest({"plan": contents, "records": manifest["records"]})
    manifest["request"] = documents.digest({"question": question, "name": manifest["name"]})
