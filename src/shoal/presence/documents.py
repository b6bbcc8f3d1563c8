"""Documents of private counts: plan, record and manifest, of which all is for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from shoal.data import keys
from shoal.documents.model import Model, is_none
from shoal.presence.draw import Drawn
from shoal.presence.estimates import Estimates
from shoal.presence.guide import CapPart
from shoal.presence.look import ranges_of, sizes_of
from shoal.presence.request import Request
from shoal.presence.rounds import Round
from shoal.release import envelope
from shoal.release import plan as plans
from shoal.release.envelope import CONFIDENCE, Keys, Text
from shoal.release.rows import RowPart

Whole = tuple[int, ...]


class Columns(Model):
    """Which columns the records have."""

    user: Text
    value: Text | None
    cell: tuple[Text, ...]
    period: Text | None = Field(default=None, exclude_if=is_none)
    times: Text | None = Field(default=None, exclude_if=is_none)

    @classmethod
    def described(cls, columns: Mapping[str, Any] | None) -> Columns | None:
        """The columns as `shoal.Records.describe` gives them."""
        if columns is None:
            return None
        return cls(**{**columns, "cell": tuple(columns["cell"])})


class RoundPart(Model):
    """One draw: units of a user in each block, and the bits of the noise."""

    blocks: dict[str, int]
    bits: int


class SelectionPart(Model):
    """How cells are found: see `shoal.theory.key_threshold.Selection`."""

    bits: int
    first: int
    second: int
    stay: int
    found_first: int
    found_second: int


class PlanDocument(plans.PlanDocument):
    """A plan of private counts."""

    schema_: Literal["shoal.presence-plan/1"] = Field(
        default="shoal.presence-plan/1", alias="schema"
    )
    request: Request
    records: Columns | None
    rounds: dict[str, RoundPart]
    selection: SelectionPart | None = Field(default=None, exclude_if=is_none)
    claims: plans.Claims


class Results(Model):
    """The whole numbers that were drawn, and what follows from them.

    Attributes:
        cells: The first look, a number for each cell; null without one.
        sizes: The second look, by block and size.
        range: The position of the selected range; null without statistics of values.
        answers: By block; of values all cells of the first part, then of the next.
        users: About how many users there are.
        caps: By block.
        knots: Where the parts of values lie, in the value's unit; empty without them.
        rows: A row for each statistic.
        keys: The cells that were found; null if they were listed.
    """

    cells: Whole | None
    sizes: dict[str, Whole]
    range: int | None
    answers: dict[str, Whole]
    users: float
    caps: dict[str, CapPart]
    knots: tuple[float, ...]
    rows: tuple[RowPart, ...]
    keys: Keys | None = Field(default=None, exclude_if=is_none)

    @classmethod
    def of_numbers(cls, numbers: Estimates) -> Results:
        """All of a release."""
        drawn = numbers.drawn
        look = numbers.look
        knots: list[float] = []
        if drawn.range is not None:
            knots = numbers.values.knots.tolist()
        return cls(
            cells=None if drawn.cells is None else tuple(drawn.cells),
            sizes=_tuples(drawn.sizes),
            range=drawn.range,
            answers=_tuples(drawn.answers),
            users=look.users,
            caps={name: CapPart(**vars(cap)) for name, cap in look.caps.items()},
            knots=tuple(knots),
            rows=tuple(map(RowPart.of_row, numbers.rows(CONFIDENCE))),
            keys=drawn.keys,
        )


class Record(envelope.Record):
    """All of a release of private counts: it has no row of a user."""

    kind: Literal["presence"]
    records: Columns
    plan: PlanDocument
    results: Results


class Published(envelope.Published):
    """All of the record, too."""

    plan: dict[str, Any]
    results: Results


class Manifest(envelope.Manifest):
    """What everybody may have: all of it, so that anybody computes the loss and the values."""

    kind: Literal["presence"]
    records: Columns
    results: Published


def drawn_of(results: Mapping[str, Any], request: Request, rounds: Mapping[str, Round]) -> Drawn:
    """Returns what was drawn; a LookupError if there are not as many numbers as were planned."""
    found = None
    if request.finds:
        found = keys.from_document(results["keys"])
        if found.column_names != request.keys.column_names:
            raise LookupError
        request = request.of_cells(found)
        if not found.num_rows:
            return Drawn(None, {}, None, {}, found)
    cells = request.keys.num_rows
    noisy_cells = results["cells"]
    position = results["range"]
    sizes = {name: [*each] for name, each in results["sizes"].items()}
    answers = {name: [*each] for name, each in results["answers"].items()}
    blocks = rounds["answers"].blocks
    looked = rounds["sizes"].blocks if "sizes" in rounds else {}
    many = dict.fromkeys(blocks, cells)
    if "values" in blocks:
        many |= {"values": cells * (request.n_pieces + 1), "tails": 6}
    ranges = len(ranges_of(1 << request.tick_bits)[0])
    fits = (
        {name: len(each) for name, each in answers.items()} == many
        and {name: len(each) for name, each in sizes.items()}
        == {name: len(sizes_of(name, cells).edges) for name in looked}
        and (noisy_cells is not None) == ("cells" in rounds)
        and (noisy_cells is None or len(noisy_cells) == cells)
        and (position is not None) == (request.n_pieces > 0)
        and (position is None or 0 <= position < ranges)
        and (request.guide is None or position == request.guide.range)
    )
    if not fits:
        raise LookupError
    return Drawn(None if noisy_cells is None else [*noisy_cells], sizes, position, answers, found)


def _tuples(lists: Mapping[str, list[int]]) -> dict[str, Whole]:
    return {name: tuple(each) for name, each in lists.items()}
