"""Whole numbers that a release of questions draws: linear ones, and second moments of groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal import documents
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError, InputError
from shoal.privacy.noise import LARGEST_STEPS, Noise
from shoal.theory.questions.integer_strategy import (
    TICKS,
    IntegerForm,
    answers,
    integer_strategy,
    loss_with_forms,
    loss_with_moments,
    moment_step,
    second_moments,
)

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
BITS = 32
_ROW = 1 << 40
# Of linear ones.
MOST_NUMBERS = 512
# Rounding to steps costs at most this part of the loss.
_ROUNDING = 1000
_NUMBERS, _MOMENTS, _FORMS = 0, 1, 2
_FORM = 1 << 20
# A question that is off by less than this part of its length is answered.
ANSWERED = 1e-9


@dataclass(frozen=True, eq=False)
class Numbers:
    """Rows of weights as whole numbers, steps, and what all of it costs.

    Attributes:
        rows: a, of at most 2^40 in size, shape (numbers, units).
        steps: Of each number, in weights times ticks, shape (numbers,).
        moment_step: Of the second moments, in squared ticks; 0 where there are forms.
        by: Columns that make groups of second moments, besides arms.
        forms: Variances of the questions where whole groups were assigned, in place of moments.
    """

    rows: Whole
    steps: Whole
    moment_step: int
    by: tuple[str, ...] = ()
    forms: tuple[IntegerForm, ...] = ()

    @classmethod
    def of(cls, rows: Floats, width: float, epsilon: Fraction, by: tuple[str, ...] = ()) -> Numbers:
        """Whole numbers for rows, of an exact loss of at most epsilon with second moments.

        Raises:
            InputError: An epsilon that leaves nothing, or noise that does not fit 60 bits.
        """
        rounding = Fraction(len(rows), 2**BITS)
        if epsilon < _ROUNDING * rounding:
            raise InputError(
                f"epsilon {float(epsilon):.3g} for {len(rows)} numbers",
                f"at least {float(_ROUNDING * rounding):.3g}",
                "ask for a larger epsilon, or fewer questions",
            )
        found = integer_strategy(rows, width, epsilon - rounding, bits=BITS)
        step = moment_step(found.rows, found.steps)
        made = cls(found.rows, found.steps, step, by)
        if not made.fits:
            raise InputError(
                f"epsilon {float(epsilon):.3g} for {rows.shape[1]} units",
                "numbers that fit 60 bits",
                "ask for a more moderate epsilon",
            )
        return made

    @cached_property
    def loss(self) -> Fraction:
        """The exact loss of one outcome, second moments or forms included."""
        if self.forms:
            return loss_with_forms(self.rows, self.steps, self.forms, BITS)
        return loss_with_moments(self.rows, self.steps, self.moment_step, BITS)

    @property
    def fits(self) -> bool:
        """Whether every number fits 61 bits with its offset, and weights and steps theirs."""
        bounded = (
            len(self.steps) <= MOST_NUMBERS
            and int(np.abs(self.rows).max()) <= _ROW
            and max(int(self.steps.max()), self.moment_step) <= LARGEST_STEPS
        )
        most = [2 * each for each in self._offsets] + [each.most_steps for each in self.forms]
        if not self.forms:
            most.append(self.rows.shape[1] * (TICKS // 2) ** 2 // self.moment_step)
        return bounded and max(most) < LARGEST_STEPS

    @cached_property
    def _offsets(self) -> list[int]:
        """What makes every number at least 0: public."""
        upper, lower = np.abs(self.rows) >> 20, np.abs(self.rows) & (1 << 20) - 1
        sums = zip(upper.sum(axis=1).tolist(), lower.sum(axis=1).tolist(), strict=True)
        return [
            ((high << 20) + low) * (TICKS // 2) // step + 1
            for (high, low), step in zip(sums, self.steps.tolist(), strict=True)
        ]

    def weights(self) -> Floats:
        """The rows as they are released, in steps a tick, shape (numbers, units)."""
        return np.asarray(self.rows / self.steps[:, None])

    def recover(self, rows: Floats) -> Floats:
        """Rows as sums of released ones by least squares, shape (questions, numbers).

        All numbers have noise of one scale in steps: no linear unbiased estimate has less variance.

        Args:
            rows: Shape (questions, units).
        """
        return np.asarray(rows @ self._inverse)

    def answer(self, rows: Floats) -> bool:
        """Whether rows are sums of multiples of released ones, to 1e-9 of their length."""
        off = self.recover(rows) @ self.weights() - rows
        norms = np.linalg.norm(rows, axis=1)
        return bool((np.linalg.norm(off, axis=1) <= ANSWERED * norms).all())

    def noise(self, rows: Floats, width: float) -> Floats:
        """Covariance of the noise of rows, in the outcome's squared unit, shape (rows, rows).

        Args:
            rows: Shape (rows, units).
            width: Of the outcome's range.
        """
        weighed = self.recover(rows) * (self.worth(width) * step_deviation())
        return np.asarray(weighed @ weighed.T)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.pinv(self.weights(), rcond=1e-12))

    @staticmethod
    def worth(width: float) -> float:
        """What one tick is worth, in the outcome's unit."""
        return width / TICKS

    def moment_value(self, width: float) -> float:
        """What one step of a second moment is worth, in the outcome's squared unit."""
        return self.moment_step * (width / TICKS) ** 2

    def draw(self, outcomes: Floats, group: Whole, space: Space, noise: Noise) -> Released:
        """All numbers with their noise.

        Guarantees: `loss`, whatever the outcomes (docs/theory/questions.md).

        Args:
            outcomes: In the units' order. Private.
            group: Of each unit, for second moments.
            space: Its ends are those of the range.
            noise: Where randomness comes from.
        """
        ticks = ticks_of(outcomes, space)
        plain = answers(self.rows, self.steps, ticks)
        raised = [each + off for each, off in zip(plain, self._offsets, strict=True)]
        drawn = noise.add_laplace(raised, BITS, _NUMBERS)
        numbers = tuple(each - off for each, off in zip(drawn, self._offsets, strict=True))
        if self.forms:
            told = [each.value(ticks) for each in self.forms]
            return Released(numbers, (), tuple(noise.add_laplace(told, BITS, _FORMS)))
        squares = second_moments(group, ticks, self.moment_step)
        return Released(numbers, tuple(noise.add_laplace(squares, BITS, _MOMENTS)))

    def to_document(self) -> documents.Document:
        """All of it as a JSON object; weights are packed with 2^40 added, factors with 2^20."""
        more = {"forms": [_form_document(each) for each in self.forms]} if self.forms else {}
        return more | {
            "rows": documents.pack_integers((self.rows + _ROW).ravel()),
            "steps": documents.pack_integers(self.steps),
            "moment_step": self.moment_step,
            "groups_by": list(self.by),
            "lattice_bits": BITS,
        }

    @classmethod
    def from_document(cls, document: documents.Document, units: int) -> Numbers:
        """The inverse of `to_document`.

        Raises:
            DocumentError: A part is missing or damaged.
        """
        steps = documents.unpack_integers(document["steps"], "steps")
        rows = documents.unpack_integers(document["rows"], "rows")
        if not len(steps) or len(rows) != len(steps) * units or document["lattice_bits"] != BITS:
            raise DocumentError(
                "numbers that are not those of the units",
                "a document written by shoal",
                "fetch it again, or have it delivered from the ledger",
            )
        by, step = tuple(document["groups_by"]), document["moment_step"]
        forms = tuple(_form_of(each, units) for each in document.get("forms", ()))
        return cls(rows.reshape(len(steps), units) - _ROW, steps, step, by, forms)


@dataclass(frozen=True)
class Released:
    """What was drawn, in steps.

    Attributes:
        numbers: The linear ones.
        moments: Of the groups.
        forms: Variances of the questions, where whole groups were assigned.
    """

    numbers: tuple[int, ...]
    moments: tuple[int, ...]
    forms: tuple[int, ...] = ()


def _form_document(form: IntegerForm) -> documents.Document:
    return {
        "factor": documents.pack_integers((form.factor + _FORM).ravel()),
        "kind": documents.pack_integers(form.kind),
        "limits": documents.pack_integers(form.limits),
        "step": form.step,
    }


def _form_of(document: documents.Document, units: int) -> IntegerForm:
    """The inverse; parts that do not fit each other are refused when they are used.

    Raises:
        DocumentError: A part is damaged.
        ValueError: Numbers of another shape.
    """
    kind = documents.unpack_integers(document["kind"], "kind")
    factor = documents.unpack_integers(document["factor"], "factor") - _FORM
    if len(kind) != units:
        raise ValueError
    limits = documents.unpack_integers(document["limits"], "limits")
    return IntegerForm(factor.reshape(-1, int(kind.max()) + 1), kind, limits, document["step"])


def ticks_of(outcomes: Floats, space: Space) -> Whole:
    """Outcomes as whole ticks of the range over 2^20 from its middle, clipped to its ends. Private.

    An outcome moves by at most half a tick; no other outcome has a say in it.

    Example:
        >>> from shoal.data.outcome_space import Space
        >>> ticks_of(np.array([0.0, 0.5, 7.0]), Space.binary()).tolist()
        [-524288, 0, 524288]
    """
    low, high = space.levels[0], space.levels[-1]
    part = (np.clip(outcomes, low, high) - low) / (high - low)
    return np.asarray(np.rint(part * TICKS).astype(np.int64) - TICKS // 2)


def step_deviation() -> float:
    """Standard deviation of discrete Laplace noise of scale 2^32, in steps.

    1/(sqrt(2) sinh(2^-33)).

    Example:
        >>> round(step_deviation() / 2**32, 9)
        1.414213562
    """
    return math.sqrt(0.5) / math.sinh(2.0 ** (-BITS - 1))
