"""All seeded faults, layer by layer."""

from __future__ import annotations

from tests.evidence.seeded import (
    accounting,
    books,
    bounding,
    documents,
    files,
    gaussian_vectors,
    group_commits,
    left_out,
    limits,
    means,
    noise,
    opinions,
    planning,
    public_facts,
    questions,
    records,
    theory,
    trials,
    unbiased,
    vectors,
)

LAYERS = (
    theory,
    bounding,
    means,
    noise,
    planning,
    left_out,
    vectors,
    gaussian_vectors,
    accounting,
    books,
    group_commits,
    records,
    documents,
    files,
    limits,
    trials,
    unbiased,
    questions,
    opinions,
    public_facts,
)
FAULTS = tuple(fault for layer in LAYERS for fault in layer.FAULTS)
