"""`shoal ledger`: create, show and verify the ledger of a data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import Json, show, show_json

if TYPE_CHECKING:
    from shoal.privacy.budget import Budget
    from shoal.privacy.ledger import Entry, State

app = typer.Typer(
    help="Create, show and verify the ledger of a data set.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Book = Annotated[Path, typer.Argument(help="The ledger's file, whose name ends in .ledger.")]


@app.command()
def create(
    path: Book,
    epsilon: Annotated[str, typer.Option(help="Total privacy loss the data set may ever have.")],
    unit: Annotated[
        str, typer.Option(help="What is protected: the user column's name, or 'each row'.")
    ],
    delta: Annotated[str, typer.Option(help="Total delta.")] = "0",
) -> None:
    """Create a ledger with a budget and a privacy unit that never change.

    Example: shoal ledger create flights.ledger --epsilon 2 --unit tailnum
    """
    from shoal.privacy.ledger import Ledger
    from shoal.privacy.unit import words

    Ledger.create(path, epsilon=epsilon, delta=delta, unit=unit)
    show(f"created {path} with epsilon {epsilon} and delta {delta}, for {words(unit)}")


@app.command("show")
def show_ledger(path: Book, as_json: Json = False) -> None:
    """Show the unit, the budget, what is spent, and each release's kind, charge, sum and name.

    Example: shoal ledger show flights.ledger
    """
    from shoal.privacy.ledger import Ledger

    book = Ledger(path)
    state = book.state()
    # Another process may record meanwhile.
    entries = book.entries()[: state.entries]
    if as_json:
        show_json(_document(state, entries))
    else:
        show("\n".join(_lines(state, entries)))


@app.command()
def verify(
    path: Book,
    head: Annotated[
        str, typer.Option(help="A head noted elsewhere, which must be in the chain.")
    ] = "",
) -> None:
    """Recompute the chain of hashes and the sum of charges.

    Example: shoal ledger verify flights.ledger
    """
    from shoal.privacy.ledger import Ledger

    state = Ledger(path).verify(head)
    show(f"yes, {state.entries} releases hold together; head {state.head}")


def _lines(state: "State", entries: "list[Entry]") -> list[str]:
    from shoal.privacy.budget import show as shown
    from shoal.privacy.unit import words

    budget, spent, left = state.budget, state.spent, shown(state.left.epsilon, up=False)
    lines = [
        f"protects {words(state.unit)}",
        f"budget epsilon {shown(budget.epsilon)}, spent {shown(spent.epsilon)}, left {left}; "
        f"{len(entries)} releases",
    ]
    if budget.delta:
        lines.append(f"budget delta {shown(budget.delta)}, spent {shown(spent.delta)}")
    if entries:
        lines += _table(entries, deltas=bool(budget.delta))
    return [*lines, f"head {state.head}"]


def _table(entries: "list[Entry]", *, deltas: bool) -> list[str]:
    """One row an entry, below the columns' names; the name comes last, as it may be long."""
    from shoal.files.text_table import aligned
    from shoal.privacy.budget import show as shown

    heads = ["entry", "kind", "epsilon", "sum", *["delta", "sum of delta"] * deltas]
    rows = [[*heads, "recorded at (UTC)", "question", "name"]]
    for entry in entries:
        both = [shown(entry.charge.delta), shown(entry.spent.delta)] * deltas
        rows.append(
            [
                *(str(entry.number), entry.kind or "other"),
                *(shown(entry.charge.epsilon), shown(entry.spent.epsilon), *both),
                *(entry.recorded_at.removesuffix("+00:00"), entry.question[:12]),
                entry.name or "without a name",
            ]
        )
    return aligned(rows)


def _document(state: "State", entries: "list[Entry]") -> dict[str, Any]:
    return {
        "unit": state.unit,
        "budget": _pair(state.budget),
        "spent": _pair(state.spent),
        "head": state.head,
        "entries": [
            {
                "number": entry.number,
                "kind": entry.kind,
                "name": entry.name,
                "question": entry.question,
                **_pair(entry.charge),
                "spent": _pair(entry.spent),
                "recorded_at": entry.recorded_at,
                "hash": entry.hash,
            }
            for entry in entries
        ],
    }


def _pair(budget: "Budget") -> dict[str, str]:
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta)}
