"""Draws exact noise on counts of users who may be in every cell: uniform in a ball of random size.

The norm of whole numbers z is max(z, 0) + max(-z, 0), of the largest above 0 and the smallest below
it. The ball of size k holds (k + 1)^(G + 1) - k^(G + 1) vectors of G whole numbers, those of norm k
or less. Noise as likely as q^norm is uniform in a ball whose size k is as likely as this number
times q^k. Such a size is drawn by rejection, as the sum of G + 1 geometric numbers, which is as
likely as C(k + G, G) q^k.

Source: docs/theory/private-counts.md#counts-without-a-cap.
"""

from collections.abc import Callable, Iterator
from typing import Any

# Draws within one draw of a release have numbers from 0 to below this, so that no two are alike.
_INNER = 1 << 20
# Words of fair bits are drawn in sets of this many.
_WORDS = 256
# Laplace numbers that are not negative are geometric. Three for each cell, and this many more, hold
# enough of them nearly always.
_SPARE = 30


def hull_noise(source: Any, cells: int, bits: int, draw: int) -> list[int]:
    """Returns the noise of all cells, of scale 2^bits steps, from Laplace noise and fair bits."""
    below = _uniform(source, draw)
    size = _size(source, cells, bits, draw, below)
    # In vectors without a number above 0, each is from -size to 0. If the largest number is `top`,
    # from 1 to size, each is from top - size to top, and at least one of them touches `top`.
    not_above = (size + 1) ** cells
    touching = not_above - size**cells
    place = below(not_above + size * touching)
    if place < not_above:
        return [-below(size + 1) for _ in range(cells)]
    # The largest number, and the first of those that are as large.
    top = 1 + (place - not_above) // touching
    rest = below(touching)
    first = 0
    # In so many vectors, the number `first` touches `top` and none before it does.
    ways = (size + 1) ** (cells - 1)
    while rest >= ways:
        rest -= ways
        first += 1
        ways = ways * size // (size + 1)
    smaller = [top - 1 - below(size) for _ in range(first)]
    others = [top - below(size + 1) for _ in range(cells - 1 - first)]
    return [*smaller, top, *others]


def _size(source: Any, cells: int, bits: int, draw: int, below: Callable[[int], int]) -> int:
    """Returns the size of a ball, as likely as the number of vectors in it times q^size."""
    for turn in range(_INNER):
        drawn = source.add_laplace([0] * (3 * cells + _SPARE), bits, draw * _INNER + turn)
        geometric = [each for each in drawn if each >= 0]
        if len(geometric) <= cells:
            continue
        size = int(sum(geometric[: cells + 1]))
        # This is C(size + cells, cells) times a constant, and at least the number of vectors.
        ways = cells + 1
        for each in range(1, cells + 1):
            ways *= size + each
        if below(ways) < (size + 1) ** (cells + 1) - size ** (cells + 1):
            return size
    raise RuntimeError("no size of a ball was accepted")


def _uniform(source: Any, draw: int) -> Callable[[int], int]:
    """Returns a source of whole numbers from 0 to below a bound, by rejection of fair bits."""
    words = _words(source, draw)

    def below(bound: int) -> int:
        length = bound.bit_length()
        many = -(-length // 64)
        while True:
            found = 0
            for _ in range(many):
                found = found << 64 | next(words)
            found >>= 64 * many - length
            if found < bound:
                return int(found)

    return below


def _words(source: Any, draw: int) -> Iterator[int]:
    """Yields words of 64 fair bits."""
    for turn in range(_INNER):
        yield from source.bits(_WORDS, draw * _INNER + turn).tolist()
