"""Record and replay: two releases that differ in the values of one user must look the same.

Both are carried out by the public call, with frozen randomness, into ledgers of their own, their
rows in orders of their own. The same lines of code must run; the draws asked for, what is charged,
printed, logged and warned of must be equal; given the noisy numbers of the one, the other must
write the same manifest byte for byte; and the numbers before noise must differ by no more than the
stated loss pays for.
"""

from __future__ import annotations

import hashlib
import io
import logging
import shutil
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import shoal
from shoal.errors import ShoalError
from shoal.privacy import noise
from tests.support.tape import Asked, Tape, lost, waits

Release = Callable[[shoal.Ledger], bytes]

# Engines say of themselves what is old, or left to the garbage collector.
_OF_LIBRARIES = (DeprecationWarning, ResourceWarning)
SOURCE = str(Path(shoal.__file__).parent)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Slots:
    """Counts of occupied bins, one slot a user, of which the best is told."""

    draw: int
    per_user: int

    def close(self, scores: list[int]) -> bool:
        """Whether a neighbour may have another best bin."""
        *_, second, best = sorted(scores)
        return best - second <= 3 * 2 * self.per_user

    def apart(self, one: Replay, other: Replay) -> float:
        """What the counts cost, in whatever slots: a user leaves each bin and enters another."""
        first, second = (sorted(self._asked(tape).numbers) for tape in (one, other))
        moved = sum(abs(x - y) for x, y in zip(first, second, strict=True))
        return moved / 2 ** self._asked(one).scale / 2

    def without(self, tape: Replay) -> Replay:
        """The other draws."""
        return Replay(asked=[each for each in tape.asked if each is not self._asked(tape)])

    def _asked(self, tape: Replay) -> Asked:
        return next(a for a in tape.asked if a.kind == "laplace" and a.draw == self.draw)


class Case(Protocol):
    """A data set with its plan."""

    @property
    def epsilon(self) -> float:
        """Most that numbers with Laplace noise, and selections, may cost together."""
        ...

    @property
    def rho(self) -> float:
        """The same for numbers with Gaussian noise."""
        ...

    @property
    def forced(self) -> dict[int, tuple[int, int]]:
        """Draws of bits whose words are masked, and set, so that outcomes are hidden by chance."""
        ...

    @property
    def slots(self) -> Slots | None:
        """A draw whose numbers stand in slots that depend on the values, if there is one."""
        ...

    def base(self) -> Release:
        """A release of the data set."""
        ...

    def neighbour(self, rng: np.random.Generator) -> Release:
        """A release after one user's values changed, with the rows in another order."""
        ...


@dataclass(frozen=True)
class Seen:
    """What leaves a release."""

    lines: str
    count: int
    tape: Replay
    document: bytes
    spent: str
    said: str
    error: str

    @property
    def unclear(self) -> bool:
        """Whether another release could not be replayed on this one."""
        return self.tape.unclear


@dataclass
class Replay(Tape):
    """A tape that gives a neighbour the very answers that another release got."""

    forced: dict[int, tuple[int, int]] = field(default_factory=dict)
    slots: Slots | None = None
    unclear: bool = False

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """What the other release got, or frozen noise; slots get noise of their own."""
        found = super().add_laplace(steps, lattice_bits, draw)
        if self.slots is None or draw != self.slots.draw:
            return found
        own = [int(x) + 3 * at for at, x in enumerate(steps)]
        self.unclear |= self.slots.close(own)
        self.given[-1] = own
        return own

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """The same words for both, some forced."""
        kept, put = self.forced.get(draw, (2**64 - 1, 0))
        return (super().bits(size, draw) & np.uint64(kept)) | np.uint64(put)


class Watcher:
    """Runs releases under observation, each with a ledger of its own."""

    def __init__(self, folder: Path) -> None:
        self._blank, self._used = folder / "blank.ledger", folder / "used.ledger"
        shoal.Ledger.create(
            self._blank, epsilon=1000, delta="0.9", privacy_unit="person", counts="public"
        )

    def watch(
        self, case: Case, release: Release, like: Seen | None = None, *, trace: bool = True
    ) -> Seen:
        """Carry it out with frozen randomness, or with the answers that another release got."""
        shutil.copyfile(self._blank, self._used)
        book, tracer = shoal.Ledger(self._used), _Tracer()
        tape = Replay(answers=like.tape.given if like else [], forced=case.forced, slots=case.slots)
        said, document, error = io.StringIO(), b"", ""
        handler = logging.StreamHandler(said)
        logging.getLogger().addHandler(handler)
        old = sys.gettrace()
        try:
            with (
                redirect_stdout(said),
                redirect_stderr(said),
                warnings.catch_warnings(record=True) as warned,
                patch.object(noise, "OperatingSystem", lambda: tape),
            ):
                warnings.simplefilter("always")
                if trace:
                    sys.settrace(tracer)
                try:
                    document = release(book)
                except ShoalError as refused:
                    error = f"{type(refused).__name__}: {refused}"
                finally:
                    sys.settrace(old)
        finally:
            logging.getLogger().removeHandler(handler)
        text = said.getvalue() + "".join(
            str(each.message) for each in warned if not issubclass(each.category, _OF_LIBRARIES)
        )
        spent = f"{book.spent.epsilon} {book.spent.delta}"
        return Seen(tracer.digest, tracer.count, tape, document, spent, text, error)


def differences(one: Seen, other: Seen) -> list[str]:
    """What can be told from outside; in words without any number of a release."""
    found = []
    if one.error or other.error:
        found.append(f"refused: {one.error or other.error}")
    if (one.lines, one.count) != (other.lines, other.count):
        found.append(f"other lines of code ran: {one.count} and {other.count}")
    first, second = ([(a.kind, a.scale, a.draw, len(a.numbers)) for a in seen.tape.asked]
                     for seen in (one, other))  # fmt: skip
    if first != second:
        found.append("other draws were asked for")
    if one.document != other.document:
        found.append("different manifests from the same answers")
    if one.spent != other.spent:
        found.append("different charges")
    if one.said != other.said:
        found.append("different messages")
    return found


def compare(case: Case, base: Seen, other: Seen) -> tuple[list[str], float]:
    """What differs that must not, and the part of the stated loss that the numbers moved by."""
    found = differences(base, other)
    if found:
        return found, 0.0
    apart, one, another = 0.0, base.tape, other.tape
    if case.slots is not None:
        apart = case.slots.apart(one, another)
        one, another = (case.slots.without(tape) for tape in (one, another))
    epsilon, rho = lost(one, another, gaussian=case.rho > 0 and case.epsilon == 0)
    part = max(_part(epsilon + apart, case.epsilon), _part(rho, case.rho))
    if part > 1 + _ROUNDING:
        found.append(f"numbers moved by {part:.6f} times what the loss pays for")
    return found, part


def _part(used: float, stated: float) -> float:
    return 0.0 if used == 0 else used / stated if stated > 0 else float("inf")


class _Tracer:
    """A digest of the lines of shoal that run; cheap enough for whole releases."""

    def __init__(self) -> None:
        self._hash, self.count = hashlib.blake2b(digest_size=16), 0
        self._inside: dict[Any, bytes] = {}

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Any:
        code = frame.f_code
        name = self._inside.get(code)
        if name is None:
            mine = code.co_filename.startswith(SOURCE) and not waits(code)
            name = code.co_filename[len(SOURCE) :].encode() if mine else b""
            self._inside[code] = name
        if not name:
            return None
        if event == "line":
            self._hash.update(name + frame.f_lineno.to_bytes(4, "big"))
            self.count += 1
        return self
