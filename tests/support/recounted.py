"""Releases of tests are recounted: by code that shares nothing with what made them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from shoal.release.release import Release

# Distinct releases of one test that are recounted.
MOST = 3


def assert_recounted(release: Release[Any, Any] | bytes | dict[str, Any]) -> None:
    """Loss, values, errors, intervals and bounds are those of the published integers."""
    from shoal.verification.recount import recount

    document = release.document if isinstance(release, Release) else release
    manifest = document if isinstance(document, dict) else json.loads(document)
    assert recount(manifest) == []


@contextmanager
def recounting() -> Iterator[None]:
    """Recount the first releases that are delivered, when all is done."""
    documents: dict[bytes, None] = {}
    deliver = Release.__dict__["delivered"].__func__

    def delivered(cls: type[Release[Any, Any]], done: Any, *plan: Any, **more: Any) -> Any:
        release = deliver(cls, done, *plan, **more)
        # What a ledger holds was recounted when it was drawn, unless a test damaged it there.
        if len(documents) < MOST and not release.from_ledger:
            documents[release.document] = None
        return release

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "delivered", classmethod(delivered))
        yield
    for document in documents:
        assert_recounted(document)
