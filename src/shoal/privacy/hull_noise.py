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
    # `below(bound)` draws a whole number from 0 to below a bound, each as likely as any other.
    below = _uniform(source, draw)
    size = _size(source, cells, bits, draw, below)
    # In vectors without a number above 0, each is from -size to 0. If the largest number is `top`,
    # from 1 to size, each is from top - size to top, and at least one of them touches `top`. These
    # are the numbers of such vectors, for no top and for each.
    ways_without_top = (size + 1) ** cells
    ways_with_top = ways_without_top - size**cells
    place = below(ways_without_top + size * ways_with_top)
    if place < ways_without_top:
        return [-below(size + 1) for _ in range(cells)]
    top = 1 + (place - ways_without_top) // ways_with_top
    # The first number that touches `top` is drawn by the number of vectors, `ways`, in which it
    # does and none before it.
    rest = below(ways_with_top)
    first = 0
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
        # The sum is as likely as C(size + cells, cells) q^size. This is that number of ways times
        # a constant, and at least the number of vectors in the ball.
        ways = cells + 1
        for each in range(1, cells + 1):
            ways *= size + each
        vectors = (size + 1) ** (cells + 1) - size ** (cells + 1)
        if below(ways) < vectors:
            return size
    raise RuntimeError("no size of a ball was accepted")


def _uniform(source: Any, draw: int) -> Callable[[int], int]:
    """Returns a source of whole numbers from 0 to below a bound, by rejection of fair bits."""
    words = _words(source, draw)

    def below(bound: int) -> int:
        """Draws as many bits as the bound has, until they are below it."""
        length = bound.bit_length()
        n_words = -(-length // 64)
        while True:
            number = 0
            for _ in range(n_words):
                number = number << 64 | next(words)
            number >>= 64 * n_words - length
            if number < bound:
                return int(number)

    return below


def _words(source: Any, draw: int) -> Iterator[int]:
    """Yields words of 64 fair bits."""
    for turn in range(_INNER):
        yield from source.bits(_WORDS, draw * _INNER + turn).tolist()
