"""An outcome space from a short text, for the command line."""

from shoal.data.outcome_space import Space
from shoal.errors import InputError

ALLOWED = "binary, counts:0:10, bins:0:100, bins:0:100:16, levels:1,2,5, or ordinal:low,mid,high"
_RANGE, _RANGE_AND_NUMBER = 2, 3


def space_of(text: str, rounding: str = "random") -> Space:
    """The space that a text names.

    Args:
        text: `binary`, `counts:LEAST:MOST`, `bins:LO:HI` or `bins:LO:HI:NUMBER`,
            `levels:A,B,...` or `ordinal:NAME,NAME,...`.
        rounding: `random` or `nearest`.

    Raises:
        InputError: Another text, or levels that are not usable.

    Example:
        >>> space_of("counts:0:2").levels, space_of("bins:0:1:3").levels
        ((0.0, 1.0, 2.0), (0.0, 0.5, 1.0))
    """
    kind, _, rest = text.partition(":")
    try:
        found = _made(kind, rest)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        found = None
    if found is None:
        raise InputError(f"a space {text[:60]!r}", ALLOWED, "give for example --space binary")
    return Space(found.levels, rounding, found.labels)


def _made(kind: str, rest: str) -> Space | None:
    parts = rest.split(":")
    if kind == "binary" and not rest:
        return Space.binary()
    if kind == "counts" and len(parts) == _RANGE:
        return Space.counts(int(parts[0]), int(parts[1]))
    if kind == "bins" and len(parts) == _RANGE:
        return Space.bins(float(parts[0]), float(parts[1]))
    if kind == "bins" and len(parts) == _RANGE_AND_NUMBER:
        return Space.bins(float(parts[0]), float(parts[1]), int(parts[2]))
    if kind == "levels":
        return Space(tuple(float(part) for part in rest.split(",")))
    if kind == "ordinal":
        return Space.ordinal([part.strip() for part in rest.split(",")])
    return None
