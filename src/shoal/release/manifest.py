"""The manifest of a release: everything public about it, in one JSON document of one form."""

import platform
from importlib.metadata import version
from typing import Any

from shoal import documents
from shoal.release.envelope import MANIFEST
from shoal.release.question import Question

CONFIDENCE = 0.95


def make_manifest(question: Question, results: Any, *, simulated: bool) -> documents.Document:
    """Put what was drawn, as JSON, and all that is public about it together."""
    return {
        "schema": MANIFEST,
        "kind": question.kind,
        "name": question.name,
        "records": dict(question.records),
        "request": question.request,
        "simulation": simulated,
        "guarantee": question.guarantee,
        "plan": question.plan,
        "results": results,
        "confidence": CONFIDENCE,
        "versions": {
            "shoal": version("shoal"),
            "opendp": version("opendp"),
            "python": platform.python_version(),
        },
    }
