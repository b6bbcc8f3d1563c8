"""`shoal ledger`: the books of one data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Json, show, show_json

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
) -> None:
    """Create a ledger with a budget that never changes.

    Example: shoal ledger create flights.ledger --epsilon 2
    """
    from shoal.accounting.ledger import Ledger

    Ledger.create(path, epsilon=epsilon, delta=delta)
    more = "" if delta == "0" else f", delta {delta}"
    show(f"created {path} with epsilon {epsilon}{more}")


@app.command("show")
def show_ledger(path: Book, as_json: Json = False) -> None:
    """Show the budget, what is spent and each recorded release.

    Example: shoal ledger show flights.ledger
    """
    from shoal.accounting.ledger import Ledger
    from shoal.accounting.rational import show as shown

    book = Ledger.open(path)
    entries = book.entries()
    if as_json:
        show_json(
            {
                "budget": {"epsilon": str(book.budget.epsilon), "delta": str(book.budget.delta)},
                "spent": {"epsilon": str(book.spent.epsilon), "delta": str(book.spent.delta)},
                "head": book.head,
                "entries": [
                    {
                        "number": entry.number,
                        "label": entry.label,
                        "request": entry.request,
                        "epsilon": str(entry.epsilon),
                        "delta": str(entry.delta),
                        "recorded_at": entry.recorded_at,
                        "hash": entry.hash,
                    }
                    for entry in entries
                ],
            }
        )
        return
    left = f"{float(book.remaining.epsilon):.6g}"
    show(
        f"budget epsilon {shown(book.budget.epsilon)}, spent {shown(book.spent.epsilon)}, "
        f"left {left}; {len(entries)} releases"
    )
    if book.budget.delta:
        show(f"budget delta {shown(book.budget.delta)}, spent {shown(book.spent.delta)}")
    for entry in entries:
        show(
            f"{entry.number:>4}  epsilon {shown(entry.epsilon):<9} {entry.recorded_at}  "
            f"{entry.request[:12]}  {entry.label}"
        )
    show(f"head {book.head}")


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
    from shoal.accounting.ledger import Ledger

    book = Ledger.open(path)
    book.verify(head=head)
    show(f"yes, {len(book.entries())} releases hold together; head {book.head}")
