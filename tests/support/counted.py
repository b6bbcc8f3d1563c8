"""Counts of tables in memory: each is counted once, for however many plans."""

import pyarrow as pa

import shoal

_KNOWN: dict[tuple[int, str], tuple[shoal.Records, shoal.Counts]] = {}


def counted(records: shoal.Records) -> shoal.Counts:
    """Public counts of records, kept if their table cannot change."""
    if not isinstance(records.source, pa.Table):
        return records.counts()
    key = (id(records.source), str(records.describe()))
    if key not in _KNOWN:
        # Records keep their table alive, so that its identity is not another one's.
        _KNOWN[key] = records, records.counts()
    return _KNOWN[key][1]
