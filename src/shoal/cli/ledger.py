"""`shoal ledger`: create, show and verify the ledger of a data set."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from shoal.cli import options as o
from shoal.cli.output import show, show_json

if TYPE_CHECKING:
    from shoal.privacy.ledger import Entry, State


def create(
    path: o.LedgerFile, epsilon: o.Epsilon, unit: o.LedgerUnit, delta: o.Delta = "0"
) -> None:
    """Create a ledger with a budget and a privacy unit that never change.

    Example: shoal ledger create flights.ledger --epsilon 2 --unit tailnum
    """
    from shoal.privacy.ledger import Ledger
    from shoal.privacy.unit import words

    Ledger.create(path, epsilon=epsilon, delta=delta, unit=unit)
    show(f"created {path} with epsilon {epsilon} and delta {delta}, for {words(unit)}")


def show_ledger(path: o.LedgerFile, as_json: o.Json = False) -> None:
    """Show the unit, the budget, what is spent, and every release.

    Example: shoal ledger show flights.ledger
    """
    from shoal.privacy.ledger import Ledger

    book = Ledger(path)
    state = book.state()
    # Another process may record meanwhile.
    entries = book.entries()[: state.entries]
    if not as_json:
        show(_text(state, entries))
        return
    rows = [asdict(each) for each in entries]
    for row in rows:
        del row["document"]
    show_json(asdict(state) | {"entries": rows})


def verify(path: o.LedgerFile, head: o.Head = "") -> None:
    """Recompute the chain of hashes and the sum of charges.

    Example: shoal ledger verify flights.ledger
    """
    from shoal.privacy.ledger import Ledger

    state = Ledger(path).verify(head)
    show(f"yes, {state.entries} releases hold together; head {state.head}")


def _text(state: "State", entries: "list[Entry]") -> str:
    """Budget, and one row an entry; the name comes last, as it may be long."""
    from shoal.files.text_table import aligned
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
    deltas = bool(budget.delta)
    heads = ["entry", "kind", "epsilon", "sum", *["delta", "sum of delta"] * deltas]
    rows = [[*heads, "recorded at (UTC)", "question", "name"]]
    for each in entries:
        both = [shown(each.charge.delta), shown(each.spent.delta)] * deltas
        loss = [shown(each.charge.epsilon), shown(each.spent.epsilon), *both]
        at, name = each.recorded_at.removesuffix("+00:00"), each.name or "without a name"
        rows.append([str(each.number), each.kind or "other", *loss, at, each.question[:12], name])
    if entries:
        lines += aligned(rows, left=len(rows[0]))
    return "\n".join([*lines, f"head {state.head}"])
