"""`shoal ledger`: the books of one data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import Json, show, show_json

if TYPE_CHECKING:
    from shoal.privacy.budget import Budget
    from shoal.privacy.ledger.entry import Link
    from shoal.privacy.ledger.ledger import Ledger

app = typer.Typer(
    help="Create, show and verify the ledger of a data set.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Book = Annotated[Path, typer.Argument(help="The ledger's file.")]


@app.command()
def create(
    path: Book,
    epsilon: Annotated[str, typer.Option(help="Total privacy loss the data set may ever have.")],
    delta: Annotated[str, typer.Option(help="Total delta.")] = "0",
    unit: Annotated[
        str | None,
        typer.Option(help="What is protected, such as the user column; the first entry's if not."),
    ] = None,
) -> None:
    """Create a ledger with a budget that never changes.

    Example: shoal ledger create flights.ledger --epsilon 2 --unit tailnum
    """
    from shoal.privacy.ledger.ledger import Ledger

    book = Ledger.create(path, epsilon=epsilon, delta=delta, unit=unit)
    more = "" if delta == "0" else f", delta {delta}"
    whose = "" if book.unit is None else f", for {book.unit}"
    show(f"created {path} with epsilon {epsilon}{more}{whose}")


@app.command("show")
def show_ledger(path: Book, as_json: Json = False) -> None:
    """Show the unit, the budget, what is spent, and each release's kind, charge, sum and name.

    Example: shoal ledger show flights.ledger
    """
    from shoal.privacy.ledger.ledger import Ledger

    book = Ledger.open(path)
    # Read once: another process may record meanwhile.
    links = book.links()
    if as_json:
        show_json(_document(book, links))
    else:
        show("\n".join(_lines(book, links)))


@app.command()
def verify(
    path: Book,
    head: Annotated[
        str | None, typer.Option(help="A head noted elsewhere, which must be in the chain.")
    ] = None,
) -> None:
    """Recompute the chain of hashes and the sum of charges.

    Example: shoal ledger verify flights.ledger
    """
    from shoal.privacy.ledger.ledger import Ledger

    book = Ledger.open(path)
    book.verify(head=head)
    show(f"yes, {len(book.links())} releases hold together; head {book.head}")


def _lines(book: Ledger, links: list[Link]) -> list[str]:
    from shoal.privacy.displayed_loss import show as shown

    last, budget = links[-1] if links else None, book.budget
    unit = last.unit if last else book.unit
    spent = last.spent if last else budget - budget
    lines = [
        f"protects {unit or 'whatever the first release protects'}",
        (
            f"budget epsilon {shown(budget.epsilon)}, spent {shown(spent.epsilon)}, "
            f"left {float(budget.epsilon - spent.epsilon):.6g}; {len(links)} releases"
        ),
    ]
    if budget.delta:
        lines.append(f"budget delta {shown(budget.delta)}, spent {shown(spent.delta)}")
    if links:
        lines += _table(links, deltas=bool(budget.delta))
    return [*lines, f"head {last.hash if last else book.head}"]


def _table(links: list[Link], *, deltas: bool) -> list[str]:
    """One row an entry, below the columns' names; the name comes last, as it may be long."""
    from shoal.privacy.displayed_loss import show as shown

    heads = ["entry", "kind", "epsilon", "sum", *["delta", "sum of delta"] * deltas]
    rows = [[*heads, "recorded at (UTC)", "question", "name"]]
    for link in links:
        both = [shown(link.delta), shown(link.spent.delta)] * deltas
        rows.append(
            [
                *(str(link.number), link.kind or "other"),
                *(shown(link.epsilon), shown(link.spent.epsilon), *both),
                *(link.recorded_at.removesuffix("+00:00"), link.question[:12]),
                link.name or "without a name",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join(text.ljust(width) for text, width in row).rstrip() for row in padded]


def _document(book: Ledger, links: list[Link]) -> dict[str, Any]:
    last = links[-1] if links else None
    unit = last.unit if last else book.unit
    return {
        "unit": None if unit is None else unit.to_document(),
        "budget": _pair(book.budget),
        "spent": _pair(last.spent if last else book.budget - book.budget),
        "head": last.hash if last else book.head,
        "entries": [
            {
                "number": link.number,
                "kind": link.kind,
                "name": link.name,
                "unit": link.unit.to_document(),
                "question": link.question,
                **_pair(link.charge),
                "spent": _pair(link.spent),
                "recorded_at": link.recorded_at,
                "hash": link.hash,
            }
            for link in links
        ],
    }


def _pair(budget: Budget) -> dict[str, str]:
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta)}
