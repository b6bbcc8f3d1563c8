"""A source of noise that records what it is asked for, and answers with frozen randomness."""

import os
from dataclasses import dataclass, field
from types import CodeType

import numpy as np
from numpy.typing import NDArray

_WAITING = frozenset({"_insist", "_granted"})


@dataclass(frozen=True)
class Asked:
    """One call of a noise source: what reached it before any noise."""

    kind: str
    numbers: tuple[int, ...] = field(repr=False)
    scale: float
    draw: int


@dataclass
class Tape:
    """Stands for the operating system's noise, for record and replay.

    Numbers get the same noise whatever they are, selections give a fixed candidate, and fair bits
    are those of a seed: what differs between two recordings differs by the private values alone.

    Attributes:
        part: Where among the candidates a selection lands, from 0 to below 1.
        places: If not empty, what draws select in turn, or the last candidate if there are fewer.
        rise: By which the noise of a number is larger than that of the one before it.
        rows: If not None, words for as many rows, or several for each, are dealt in this order: a
            row that moved keeps its words.
        simulated: As the operating system's unless said.
        answers: Noisy numbers of another recording, in their order: they are given in place of its
            own, as what later draws start from must be equal for both.
        asked: All calls, in order.
        given: Noisy numbers that were given, in their order.
    """

    part: float = 0.5
    places: tuple[int, ...] = ()
    rise: int = 3
    rows: NDArray[np.int64] | None = None
    simulated: bool = False
    answers: list[list[int]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    given: list[list[int]] = field(default_factory=list)

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Numbers that rise from one to the next are the noise."""
        self.asked.append(Asked("laplace", tuple(map(int, steps)), lattice_bits, draw))
        return self._answer([int(x) + self.rise * at for at, x in enumerate(steps)])

    def add_gaussian(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The same."""
        self.asked.append(Asked("gaussian", tuple(map(int, steps)), lattice_bits, draw))
        return self._answer([int(x) + self.rise * at for at, x in enumerate(steps)])

    def add_counted(
        self, counted: tuple[int, ...], lattice_bits: int, draw: int
    ) -> tuple[int, ...]:
        """The same."""
        self.asked.append(Asked("counted", tuple(map(int, counted)), lattice_bits, draw))
        return tuple(self._answer([int(x) + self.rise * at for at, x in enumerate(counted)]))

    def add_sum_zero(self, rows: list[list[int]], lattice_bits: int, draw: int) -> list[list[int]]:
        """What the first entry of each row gets, the last one loses."""
        flat = [int(x) for row in rows for x in row]
        self.asked.append(Asked("sum zero", tuple(flat), lattice_bits, draw))
        size = len(rows[0])
        moved = [[row[0] + self.rise, *row[1:-1], row[-1] - self.rise] for row in rows]
        found = self._answer([int(x) for row in moved for x in row])
        return [found[at : at + size] for at in range(0, len(found), size)]

    def select(self, scores: NDArray[np.int64], scale: float, draw: int) -> int:
        """A candidate that does not depend on the scores."""
        self.asked.append(Asked("select", tuple(scores.tolist()), scale, draw))
        if self.places:
            return min(self.places[draw % len(self.places)], len(scores) - 1)
        return int(self.part * len(scores))

    @property
    def scores(self) -> list[NDArray[np.int64]]:
        """Of all selections."""
        return [np.array(each.numbers) for each in self.asked if each.kind == "select"]

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers that were drawn for last."""
        return next(
            each.numbers for each in self.asked[::-1] if each.kind in ("laplace", "gaussian")
        )

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """Words of a generator seeded by the draw."""
        self.asked.append(Asked("bits", (size,), 0.0, draw))
        words = np.random.default_rng([size, draw]).integers(2**64, size=size, dtype=np.uint64)
        if self.rows is not None and size % len(self.rows) == 0:
            words = words.reshape(-1, len(self.rows))[:, self.rows].ravel()
        return words

    def _answer(self, own: list[int]) -> list[int]:
        at = len(self.given)
        known = self.answers[at] if at < len(self.answers) else own
        self.given.append(known if len(known) == len(own) else own)
        return list(self.given[-1])


def lost(one: Tape, other: Tape, *, gaussian: bool = False) -> tuple[float, float]:
    """What the calls of two recordings cost who tells them apart: epsilon, and rho if Gaussian.

    A selection whose scores differ by at most d costs 2 d / scale, Laplace noise the l1 distance of
    numbers over its scale, Gaussian noise half the square of the l2 distance over its scale. Where
    all is Gaussian otherwise, selections of a loss of e together have a rho of e^2/2
    (docs/theory/cells.md#centre-radius-and-noise).

    Raises:
        AssertionError: Something else than numbers and scores differs.
    """
    epsilon = rho = 0.0
    assert len(one.asked) == len(other.asked)
    for a, b in zip(one.asked, other.asked, strict=True):
        assert (a.kind, a.scale, a.draw, len(a.numbers)) == (
            b.kind,
            b.scale,
            b.draw,
            len(b.numbers),
        )
        if a.kind == "select":
            # Scores are many, and fit 64 bits.
            epsilon += 2 * int(np.abs(np.subtract(a.numbers, b.numbers)).max()) / a.scale
            continue
        apart = [abs(x - y) for x, y in zip(a.numbers, b.numbers, strict=True)]
        if a.kind == "laplace":
            epsilon += sum(apart) / 2**a.scale
        elif a.kind == "counted":
            change = np.subtract(a.numbers, b.numbers)
            rises, falls = change[change > 0].sum(), -change[change < 0].sum()
            epsilon += float(max(rises, falls)) / 2**a.scale
        elif a.kind == "sum zero":
            epsilon += sum(apart) / 2 / 2**a.scale
        elif a.kind == "gaussian":
            rho += sum(x * x for x in apart) / (2 * 4**a.scale)
        else:
            assert a == b
    return (0.0, rho + epsilon**2 / 2) if gaussian else (epsilon, rho)


def waits(code: CodeType) -> bool:
    """Whether code waits for its turn to write a ledger: the clock decides which lines it runs."""
    return code.co_filename.endswith(f"ledger{os.sep}queue.py") or code.co_name in _WAITING
