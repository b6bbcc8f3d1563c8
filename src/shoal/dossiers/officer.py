"""A page for a data protection officer to sign: at most two printed pages, and no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from string import Template

from shoal.dossiers.case import Case, Released, left_out, met, promised
from shoal.dossiers.facts import ON_PAGE, QUESTIONS, Facts
from shoal.dossiers.others import MEDIAN, OTHERS
from shoal.errors import one_line, printable
from shoal.files.text_table import TextTable, counted
from shoal.privacy.budget import round_up, show
from shoal.report_page import HEAD, chance, paragraphs, protected

# Rows of a table, and characters of a name, that two pages have room for.
_MOST = 6
_LONGEST = 80
_TRUST = [
    "The custodian: for true counts, bounds that were not taken from the data, one ledger for "
    "these records, and a unit that is what it is called.",
    "The machine: who can read its disk or memory can read the records. Timing, memory and swap "
    "are side channels that shoal does not close.",
    "The software: shoal {shoal}, the samplers of OpenDP {opendp}, and the randomness of the "
    "operating system.",
]
_VERIFY = (
    "Anybody can run <code>shoal verify {manifest}</code>, which computes again what is shown. An "
    "auditor runs <code>shoal verify {manifest} --ledger {ledger}</code>, which computes the loss "
    "of every unit again, by separate code, from the record that the ledger keeps. <code>shoal "
    "ledger verify {ledger}</code> finds any changed or missing entry; the head today is {head}."
)
_WRONG = (
    "What is published cannot be unread, and its loss stays spent. The custodian takes the table "
    "back with <code>shoal ledger withdraw {ledger} --name NAME --reason REASON</code>: the ledger "
    "keeps the reason, and shoal no longer delivers the table. A correction is a release under a "
    "new name, with a charge of its own."
)
_PAGE = Template(
    HEAD
    + """@page { size: A4; margin: 12mm }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: .8rem 0 .2rem }
p { margin: .2rem 0 } td, th { vertical-align: top }
.lines td { height: 2.2rem; min-width: 11rem } b { font-weight: 700 }
@media print {
  :root { color-scheme: light; font: 8.5pt/1.3 system-ui, sans-serif }
  body { max-width: none; padding: 0 } td, th { padding: .05rem .5rem }
  h2 { break-after: avoid } tr, .lines { break-inside: avoid }
}
</style>
<h1>$title</h1>
$about
<h2>Who and what is protected</h2>$protected
<h2>Beside what others published</h2>$others
<h2>The budget</h2>$budget
<h2>Errors, and what is left out</h2>$errors
<h2>Who must be trusted</h2>$trust
<h2>How to verify it</h2>$verify
<h2>If a number was wrong</h2>$wrong
<h2>Signatures</h2><div class="lines">$lines</div>
</html>
"""
)


def page(case: Case, facts: Facts) -> str:
    """The page, as HTML."""
    first = case.released[0]
    known = {
        "ledger": escape(printable(case.ledger)),
        "manifest": escape(printable(first.place)),
        "head": f"<code>{case.state.head}</code>",
    }
    versions = first.manifest["versions"]
    return _PAGE.substitute(
        title=escape(printable(facts["name"] or "A release with differential privacy")),
        about=_table(("", ""), _about(facts)),
        protected=paragraphs([*_protected(case)]),
        others=_others(case),
        budget=_table(("", ""), _budget(case)) + _releases(case),
        errors=_errors(case),
        trust=paragraphs([each.format(**versions) for each in _TRUST]),
        verify=f"<p>{_VERIFY.format(**known)}</p>",
        wrong=f"<p>{_WRONG.format(**known)}</p>",
        lines=_table(
            ("", "name", "date", "signature"),
            [[who, "", "", ""] for who in ("Custodian", "Data protection officer")],
        ),
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    columns = titles if any(titles) else ()
    return TextTable("", columns, [[*map(printable, row)] for row in rows]).to_html()


def _about(facts: Facts) -> list[list[str]]:
    """Purpose, curator and the like; what is not stated yet is asked for."""
    rows = []
    for title, name in ON_PAGE.items():
        said = ", ".join(facts[name]) if isinstance(facts[name], list) else facts[name]
        rows.append([title, said or f"(not stated: the fact {name}) {QUESTIONS[name]}"])
    return rows


def _protected(case: Case) -> Iterator[str]:
    """Whom, how strongly, against whom; and what all releases together may tell."""
    strongest: dict[str, Released] = {}
    for each in case.released:
        known = strongest.setdefault(each.family, each)
        if each.entry.charge.epsilon > known.entry.charge.epsilon:
            strongest[each.family] = each
    for each in strongest.values():
        yield from protected(each.manifest["guarantee"], each.family)
    yield (
        "Against anybody who reads what is published: with any knowledge of all other records, any "
        "computer, now or later, and together with others."
    )
    budget = case.state.budget
    right = chance(round_up(budget.epsilon), round_up(budget.delta))
    over = f" of one {case.unit.period}" if case.unit.period else ""
    yield (
        f"After all releases{over} that the ledger will ever allow, {case.budget}, the same guess "
        f"is right with a probability of at most {right}."
    )


def _others(case: Case) -> str:
    """What others published, with this deployment among them."""
    unit = case.unit.name if case.unit.period is None else f"{case.unit.name}, {case.unit.period}"
    loss = case.loss
    delta = show(loss.delta) if loss.delta else ""
    what = "this deployment: all releases" if case.is_many else "this release"
    rows = [(each.epsilon, each.delta, each.unit, each.name) for each in OTHERS]
    rows.append((round_up(loss.epsilon), delta, unit, what))
    cells = []
    for epsilon, less, whose, name in sorted(rows, key=lambda row: row[0]):
        own = name == what
        texts = [show(epsilon) + (f" ({less})" if less else ""), whose, name]
        shown = [f"<b>{escape(printable(each))}</b>" if own else escape(each) for each in texts]
        cells.append(f"<tr>{''.join(f'<td>{each}</td>' for each in shown)}</tr>")
    titles = "<tr><th>ε (δ)</th><th>unit</th><th>deployment</th></tr>"
    return f"<table>{titles}{''.join(cells)}</table><p>{escape(MEDIAN)}</p>"


def _budget(case: Case) -> list[list[str]]:
    """What may be spent, is spent, is left, and when it comes back."""
    spent, left = case.spent_and_left
    return [
        ["Budget of the ledger", f"{case.budget}, for {case.whose}"],
        ["Spent", spent],
        ["Left", left],
        ["New budget", case.comes_back],
    ]


def _releases(case: Case) -> str:
    """The newest releases, as the ledger has them."""
    rows = []
    for each in case.delivered:
        when = each.recorded_at[:10]
        name = one_line(each.name, _LONGEST)
        facts = [f"{each.number}", name, each.kind, each.charge.show(up=True), when]
        notes = [str(each.periods or ""), case.withdrawal(each)]
        rows.append([*facts, "; ".join(filter(None, notes))])
    more = len(rows) - _MOST
    before = [f"{counted(more, 'earlier release')}."] if more > 0 else []
    columns = ("entry", "name", "kind", "charge", "recorded", "")
    return _table(columns, rows[-_MOST:]) + paragraphs(before)


def _errors(case: Case) -> str:
    """Which errors were promised and met, and which cells are left out and why."""
    rows = []
    for each in case.released[-_MOST:]:
        cells = "; ".join(left_out(each)) or "none left out"
        rows.append([f"{each.entry.number}", promised(each), met(each), cells])
    more = len(case.released) - _MOST
    before = [f"{counted(more, 'more manifest')} in this dossier."] if more > 0 else []
    columns = ("entry", "promised before", "95% intervals", "cells")
    return _table(columns, rows) + paragraphs(before)
