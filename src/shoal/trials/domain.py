"""Moves outcomes to public levels."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.data.columns_in_memory import floats, is_object_column, private_numbers
from shoal.errors import DataError, InputError

Positions: TypeAlias = "Sequence[int] | Ints"

FEWEST_LEVELS = 2
MOST_LEVELS = 256
# Estimates must never fail after a draw, before it is charged. So the limits of levels below keep
# fourth powers of outcomes finite, and seven digits of their differences.
# The largest level.
_LARGEST = 1e50
# The smallest distance from the lowest level to the highest.
_SMALLEST = 1e-50
# The same as a part of the largest level.
_NARROWEST = 1e-9
# The smallest distance of two levels, as a part of the largest level.
_CLOSEST = 1e-12
# The unit of fair numbers from 0 to 1 that decide how outcomes are rounded.
_UNIT = 2.0**-53
# The largest whole number of counts.
_MOST_COUNT = 2**53
# Numbers in texts have this form. None of them is too large or small for floating point, so that no
# text of an outcome makes reading it fail.
_NUMBER = r"^[+-]?[0-9]{1,18}([.][0-9]{0,18})?([eE][+-]?[0-9]{1,2})?$"
_TEXTS = pa.string(), pa.large_string(), pa.string_view()
_ALLOWED = "binary, counts:0:10, bins:0:100, bins:0:100:16, levels:1,2,5, or ordinal:low,mid,high"


@dataclass(frozen=True)
class Domain:
    """K public levels, ascending. Outcomes are clipped to the outer ones and moved to a level.

    A text that is no label counts as the first level: to refuse it would tell of one outcome. Where
    all labels are numbers, outcomes are compared with them as numbers: 1.0 has the label "1".
    An outcome on a level stays there. Between two levels, `random` rounding goes up with the
    probability that keeps the mean (no bias, at most a quarter of the squared gap more variance),
    and `nearest` moves each outcome by at most half a gap, which bounds the bias of every mean.
    Rounding uses a unit's own outcome and fair bits alone, so it costs no privacy.

    Attributes:
        levels: The numbers that outcomes may be, 2 to 256 of them, in the outcome's unit.
        rounding: `random` or `nearest`.
        labels: Names of the levels if outcomes are texts, else None.

    Raises:
        InputError: Fewer than two levels, not finite, not ascending, beyond 1e50, the outer ones
            closer than 1e-50 or than 1e-9 of the largest, neighbours than 1e-12 of it, or unusable
            labels.

    Guarantees: G-UNBIASED.

    Example:
        >>> Domain.binary().levels, Domain.counts(0, 3).levels, Domain.bins(0, 10, 5).levels
        ((0.0, 1.0), (0.0, 1.0, 2.0, 3.0), (0.0, 2.5, 5.0, 7.5, 10.0))
    """

    levels: tuple[float, ...]
    rounding: str = "random"
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        given = checks.items(self.levels, "levels", least=FEWEST_LEVELS, most=MOST_LEVELS)
        levels = tuple(checks.number(each, "levels") for each in given)
        if not all(a < b for a, b in itertools.pairwise(levels)):
            raise _bad_levels("the levels do not rise")
        _check_width(levels)
        checks.choice(self.rounding, ("random", "nearest"), "rounding")
        object.__setattr__(self, "levels", levels)
        if self.labels is not None:
            texts = checks.items(self.labels, "labels", most=MOST_LEVELS)
            labels = tuple(checks.text(each, "a label") for each in texts)
            object.__setattr__(self, "labels", labels)
            if not len(set(labels)) == len(labels) == len(levels):
                raise InputError(
                    "there is not one label for each level",
                    'give different, non-empty texts, as many as levels: Domain.ordinal(["no", '
                    '"yes"])',
                )
            numbers = self._label_numbers
            if numbers is not None and len(np.unique(numbers)) < len(labels):
                raise InputError(
                    "two labels are equal as numbers",
                    "leave one of them out: where all labels are numbers, outcomes are compared "
                    "with them as numbers",
                )

    @classmethod
    def binary(cls) -> "Domain":
        """The levels 0 and 1, also for booleans.

        Returns:
            The domain of these two levels.
        """
        return cls((0.0, 1.0))

    @classmethod
    def counts(cls, least: int, most: int) -> "Domain":
        """Whole numbers from the least to the most.

        Args:
            least: The lowest level, a whole number.
            most: The highest level.

        Returns:
            The domain of these levels.

        Raises:
            InputError: Not two whole numbers, or not 2 to 256 levels.
        """
        ends = {"least": -_MOST_COUNT, "most": _MOST_COUNT}
        low, high = (checks.whole(each, "levels end", **ends) for each in (least, most))
        if not FEWEST_LEVELS <= high - low + 1 <= MOST_LEVELS:
            raise InputError(
                f"counts from {low} to {high} are {high - low + 1} levels",
                f"give {FEWEST_LEVELS} to {MOST_LEVELS} of them, or bins:{low}:{high}, which keeps "
                "sums and means as they are",
            )
        return cls(tuple(float(level) for level in range(low, high + 1)))

    @classmethod
    def ordinal(cls, labels: Sequence[str], scores: Sequence[float] | None = None) -> "Domain":
        """Named levels in rising order, whose scores are 0, 1, ... unless given.

        Args:
            labels: Texts that outcomes may be.
            scores: A number for each, rising, in the unit of the effect.

        Returns:
            The domain of these levels.

        Example:
            >>> Domain.ordinal(["no", "perhaps", "yes"]).levels
            (0.0, 1.0, 2.0)
        """
        named = checks.items(labels, "labels", least=FEWEST_LEVELS, most=MOST_LEVELS)
        numbers = range(len(named)) if scores is None else scores
        return cls(tuple(checks.items(numbers, "scores")), labels=tuple(named))

    @classmethod
    def bins(cls, lo: float, hi: float, number: int = 16, rounding: str = "random") -> "Domain":
        """Continuous outcomes in public bounds: levels evenly spaced from lo to hi, both included.

        Args:
            lo: The lowest level, in the outcome's unit.
            hi: The highest level, in the outcome's unit.
            number: How many levels, 2 to 256.
            rounding: `random` or `nearest`.

        Returns:
            The domain of these levels.

        Raises:
            InputError: Bounds that do not rise, or fewer than two levels.
        """
        size = checks.whole(number, "number", least=FEWEST_LEVELS, most=MOST_LEVELS)
        low, high = cls((lo, hi)).levels
        return cls(tuple(np.linspace(low, high, size).tolist()), rounding)

    @property
    def size(self) -> int:
        """The number K of levels."""
        return len(self.levels)

    @property
    def width(self) -> float:
        """The distance from the lowest level to the highest, in the outcome's unit."""
        return self.levels[-1] - self.levels[0]

    @cached_property
    def array(self) -> Floats:
        """The levels, shape (K,), in the outcome's unit."""
        return np.array(self.levels)

    @cached_property
    def _label_numbers(self) -> Floats | None:
        """The labels as numbers, if all of them are."""
        labels = self.labels or ()
        if not labels or not all(re.fullmatch(_NUMBER, each) for each in labels):
            return None
        return np.array([float(each) for each in labels])

    def coarse(self, number: int) -> tuple[int, ...]:
        """Returns positions of `number` levels, evenly spaced, with the outer ones."""
        many = checks.whole(number, "number of levels", least=FEWEST_LEVELS, most=self.size)
        return tuple(np.linspace(0, self.size - 1, many).round().astype(int).tolist())

    def moved_to(self, kept: Positions) -> Floats:
        """Returns the probabilities with which random rounding moves a level to those in use.

        The shape is (K, levels in use).
        """
        below, share = self._between(self.array, kept)
        found = np.zeros((self.size, len(kept)))
        rows = np.arange(self.size)
        found[rows, below] = 1 - share
        found[rows, below + 1] += share
        return found

    def numbers(self, outcomes: Any) -> Floats:
        """Returns outcomes as numbers, NaN where one is missing. Private."""
        if is_object_column(outcomes) and self.labels is None:
            raise DataError(
                "the outcomes are Python objects",
                "convert them to one type, for example with astype(float)",
            )
        try:
            if self.labels is not None:
                return self._labelled(_in_arrow(outcomes))
            if isinstance(outcomes, list | tuple):
                numbers = private_numbers(outcomes)
            else:
                numbers = floats(_in_arrow(outcomes))
        except Exception:
            # The text of the engine's error may hold an outcome.
            numbers = None
        if numbers is None or numbers.ndim != 1:
            labels = "a text in every row, or a number if all labels are numbers"
            raise DataError(
                "the outcomes do not fit the domain, which takes "
                f"{labels if self.labels else 'one number in every row'}",
                "convert the outcomes, or give another domain",
            )
        return numbers

    def encode(self, numbers: Floats, words: NDArray[np.uint64], kept: Positions) -> Ints:
        """Returns positions of finite outcomes among kept levels, by a fair word each. Private."""
        levels = self.array
        value = np.clip(numbers, levels[0], levels[-1])
        if self.rounding == "nearest":
            middles = levels[:-1] + np.diff(levels) / 2
            value = levels[np.searchsorted(middles, value, side="right")]
        below, share = self._between(value, kept)
        return below + ((words >> np.uint64(11)) * _UNIT < share)

    def _between(self, value: Floats, kept: Positions) -> tuple[Ints, Floats]:
        """Returns the kept level below each value, and the value's part of the way to the next."""
        used = self.array[list(kept)]
        below = np.clip(np.searchsorted(used, value, side="right") - 1, 0, len(used) - 2)
        return below, (value - used[below]) / np.diff(used)[below]

    def _labelled(self, array: Any) -> Floats:
        """Returns the level of each outcome's label, NaN where an outcome is missing.

        If all labels are numbers, outcomes are compared with them as numbers, and else as texts. An
        outcome that is no label counts as the first one: an error would tell of one outcome.
        """
        texts = array.cast(pa.string()) if array.type in _TEXTS else None
        if self._label_numbers is None:
            if texts is None:
                raise TypeError
            place: Any = pc.index_in(texts, value_set=pa.array(self.labels or (), pa.string()))
            codes = place.fill_null(0).to_numpy(zero_copy_only=False)
            missing = texts.is_null().to_numpy(zero_copy_only=False)
        else:
            if pa.types.is_boolean(array.type):
                raise TypeError
            numbers = floats(array if texts is None else _numbers_in(texts))
            order = np.argsort(self._label_numbers)
            rising = self._label_numbers[order]
            # The first label that is not below an outcome is its own, if it has one.
            candidate = np.searchsorted(rising, numbers).clip(max=len(rising) - 1)
            codes = np.where(rising[candidate] == numbers, order[candidate], 0)
            missing = np.isnan(numbers) if texts is None else texts.is_null().to_numpy(False)
        return np.where(missing, np.nan, self.array[codes])


def _numbers_in(texts: Any) -> Any:
    """Returns the number that each text is, or null where it is none."""
    plain: Any = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(plain, _NUMBER)
    return pc.if_else(is_number, plain, pa.scalar(None, pa.string())).cast(pa.float64())


def _in_arrow(outcomes: Any) -> Any:
    """Returns outcomes as an array of Arrow of their own type."""
    array = outcomes
    if isinstance(outcomes, Mapping | set | frozenset | str | bytes):
        raise TypeError
    if not isinstance(outcomes, pa.Array | pa.ChunkedArray):
        array = pa.array(outcomes, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def domain_of(domain: object, rounding: str = "random") -> Domain:
    """Returns a domain, given itself or a short text such as `counts:0:10`, as in `_ALLOWED`."""
    if isinstance(domain, Domain):
        return domain
    if not isinstance(domain, str):
        raise InputError(
            f"domain is {checks.shown(domain)}", f"give {_ALLOWED}, or a trials.Domain"
        )
    kind, _, rest = domain.partition(":")
    parts = rest.split(":")
    listed = rest.split(",")
    try:
        if (kind, rest) == ("binary", ""):
            found = Domain.binary()
        elif kind == "counts":
            least, most = parts
            found = Domain.counts(int(least), int(most))
        elif kind == "bins":
            lo, hi, *number = parts
            found = Domain.bins(float(lo), float(hi), int(number[0]) if number else 16)
        elif kind == "levels":
            found = Domain(tuple(map(float, listed)))
        elif kind == "ordinal":
            found = Domain.ordinal([part.strip() for part in listed])
        else:
            raise ValueError
    except InputError:
        raise
    except (ValueError, TypeError):
        got = f"there is no domain {domain[:60]!r}"
        raise InputError(got, f"give one as in {_ALLOWED}") from None
    return Domain(found.levels, rounding, found.labels)


def _check_width(levels: tuple[float, ...]) -> None:
    """Refuse levels that are too large, or too close to each other."""
    largest = max(map(abs, levels))
    width = levels[-1] - levels[0]
    if largest > _LARGEST:
        raise _bad_levels(f"some levels are beyond {_LARGEST:g}")
    closest = min(b - a for a, b in itertools.pairwise(levels))
    if width < max(_SMALLEST, _NARROWEST * largest) or closest < _CLOSEST * largest:
        raise InputError(
            "all levels, or two neighbours, are nearly the same number",
            "subtract a public number from all outcomes, or change their unit: levels must span "
            f"at least {_SMALLEST:g} and {_NARROWEST:g} of the largest, neighbours must differ by "
            f"{_CLOSEST:g} of it",
        )


def _bad_levels(got: str) -> InputError:
    return InputError(
        got,
        f"give {FEWEST_LEVELS} to {MOST_LEVELS} finite numbers in rising order, for example "
        "Domain.binary() or Domain.bins(0, 100, 11)",
    )
