"""`shoal ledger`: create, show and verify the ledger of a data set."""

from dataclasses import asdict

from shoal.cli import options as o
from shoal.cli.output import show, show_json


def create(
    path: o.LedgerFile,
    epsilon: o.Epsilon,
    privacy_unit: o.LedgerUnit,
    counts: o.Counts = "private",
    delta: o.Delta = "0",
    period: o.LedgerPeriod = None,
    total: o.Total = None,
) -> None:
    """Create a ledger with a budget and a privacy unit that never change.

    With --period the budget holds in each period of the records, and so comes back.

    Example: shoal ledger create flights.ledger --epsilon 2 --privacy-unit tailnum --counts public
    """
    from shoal.privacy.ledger import Ledger

    book = Ledger.create(
        path,
        epsilon=epsilon,
        delta=delta,
        privacy_unit=privacy_unit,
        counts=counts,
        period=period,
        total=total,
    )
    in_each = "" if period is None else f" in each {period}"
    in_all = "" if total is None else f", at most epsilon {total} over all"
    show(
        f"created {path} with epsilon {epsilon} and delta {delta}{in_each}{in_all}; protects "
        f"{book.privacy_unit}"
    )


def show_ledger(path: o.LedgerFile, as_json: o.Json = False) -> None:
    """Show the unit, the budget, how much of it is spent, and every release.

    Example: shoal ledger show flights.ledger
    """
    from shoal.privacy.ledger import Ledger

    book = Ledger(path)
    if not as_json:
        show(book)
        return
    state = book.state()
    # Another process may record meanwhile.
    entries = book.entries()[: state.entries]
    rows = [asdict(each) for each in entries]
    for row in rows:
        del row["document"]
    show_json(asdict(state) | {"entries": rows})


def withdraw(
    path: o.LedgerFile, reason: o.Reason, name: o.Name = "", entry: o.Entry = None
) -> None:
    """Take a release back: it is no longer delivered, and its charge stays spent.

    Release the correction under a new name, which has a charge of its own.

    Example: shoal ledger withdraw city.ledger --name 2026-04 --reason "wrong file"
    """
    from shoal.privacy.ledger import Ledger

    done = Ledger(path).withdraw(reason=reason, name=name, number=entry)
    show(f"entry {done.withdraws} of {path} is {done.withdrawal}; its charge stays spent")


def verify(path: o.LedgerFile, head: o.Head = "") -> None:
    """Recompute the chain of hashes and the sum of charges.

    Example: shoal ledger verify flights.ledger
    """
    from shoal.files.text_table import counted
    from shoal.privacy.ledger import Ledger

    book = Ledger(path)
    state = book.verify(head)
    show(f"yes, {counted(len(book.releases()), 'release')} as recorded; head {state.head}")
