"""Which field of an SQLite file a byte belongs to (https://www.sqlite.org/fileformat2.html)."""

from __future__ import annotations

# First byte and name of each field of the header of the file.
_HEADER = (
    (0, "header, magic"),
    (16, "header, page size"),
    (18, "header, write version"),
    (19, "header, read version"),
    (20, "header, reserved space"),
    (21, "header, payload fractions"),
    (24, "header, change counter"),
    (28, "header, size in pages"),
    (32, "header, free pages"),
    (40, "header, schema cookie"),
    (44, "header, schema format"),
    (48, "header, default cache size"),
    (52, "header, largest root page"),
    (56, "header, text encoding"),
    (60, "header, user version"),
    (64, "header, incremental vacuum"),
    (68, "header, application"),
    (72, "header, reserved for expansion"),
    (92, "header, version-valid-for"),
    (96, "header, SQLite version"),
)
_LEAVES, _INTERIORS = (0x0A, 0x0D), (0x02, 0x05)
_FILE_HEADER = 100
UNUSED = "unused space of a page"


def field_at(data: bytes, offset: int) -> str:
    """A name of the field.

    Args:
        data: The whole file, undamaged.
        offset: Of the byte.
    """
    if offset < _FILE_HEADER:
        return [name for start, name in _HEADER if start <= offset][-1]
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    page, at = divmod(offset, size)
    begin = _FILE_HEADER if page == 0 else 0
    content = data[page * size : (page + 1) * size]
    kind = content[begin]
    if kind not in (*_LEAVES, *_INTERIORS):
        return "a page of overflow"
    head = begin + (8 if kind in _LEAVES else 12)
    cells = int.from_bytes(content[begin + 3 : begin + 5], "big")
    start = int.from_bytes(content[begin + 5 : begin + 7], "big") or 65536
    if at < head:
        return f"a page's header, byte {at - begin}"
    if at < head + 2 * cells:
        return "a page's cell pointers"
    if at < start:
        return UNUSED
    return "contents of a page"
