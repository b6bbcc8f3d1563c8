"""Writes a page for a data protection officer to sign: at most two printed pages, no script."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from string import Template

from shoal.dossiers.case import Case, left_out, met, promised
from shoal.dossiers.facts import FACTS, Facts
from shoal.dossiers.others import MEDIAN, OTHERS, Deployment
from shoal.errors import one_line, printable
from shoal.files.text_table import TextTable, counted
from shoal.privacy.budget import round_up, show
from shoal.report_page import GUESS, HEAD, LOSSES, banner, losses, paragraphs, protected

# Rows of a table that two pages have room for.
_MOST = 6
# Characters of a name that two pages have room for.
_LONGEST = 50
_TRUST = [
    "The custodian: for true counts, bounds that were not taken from the data, one ledger for "
    "these records, and a unit that is what it is called.{rows}",
    "The machine: who can read its disk or memory can read the records. Timing, memory and swap "
    "are side channels that shoal does not close.",
    "The software: shoal {shoal}, the samplers of OpenDP {opendp}, and the randomness of the "
    "operating system.",
]
_ROWS = (
    " The ledger keeps facts of every unit, such as how many records it has in which cell: "
    "personal data, also without names."
)
_VERIFY = (
    "Anybody can run <code>shoal verify {manifest}</code>, which computes again what is shown{all}."
    " An auditor runs <code>shoal verify {manifest} --ledger {ledger}</code>, which computes the "
    "loss of every unit again, by separate code, from the record in the ledger. <code>shoal "
    "ledger verify {ledger} --head {head}</code>, with the head of {today}, finds any changed or "
    "missing entry, also in an older copy of the ledger."
)
_AGAINST = (
    "Against anybody who reads what is published: with any knowledge of all other records, any "
    "computer, now or later, and together with others."
)
_WEAK = (
    "The promise is weaker where values are tied together: of a person who stands behind several "
    "units, and of a fact that stays the same, or a running total, over several periods, the "
    "losses add up."
)
_WRONG = (
    "What is published cannot be unread, and its loss stays spent. The custodian takes the table "
    "back with <code>shoal ledger withdraw {ledger} --name NAME --reason REASON</code>: the ledger "
    "keeps the reason, and shoal no longer delivers the table. A correction is a release under a "
    "new name, with a charge of its own."
)
_PAGE = Template(
    HEAD
    + """@page { size: A4; margin: 10mm }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: .8rem 0 .2rem }
p { margin: .2rem 0 } p:empty { display: none } td, th { vertical-align: top }
.lines td { height: 2rem; min-width: 11rem } b { font-weight: 700 }
@media print {
  :root { color-scheme: light; font: 8pt/1.2 system-ui, sans-serif }
  body { max-width: none; padding: 0 } td, th { padding: 0 .4rem }
  .withdrawn { padding: 0 .4rem }
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
    """Returns the page as HTML."""
    # The manifest that commands name as an example is no withdrawn one, if there is another.
    in_force = [each for each in case.released if not each.entry.withdrawn]
    example = (in_force or case.released)[0]
    names = {
        "ledger": escape(printable(case.ledger)),
        "manifest": escape(printable(example.place)),
        "head": case.state.head,
        "today": datetime.now(UTC).date().isoformat(),
    }
    # Releases that protect the same share a sentence.
    promises = dict.fromkeys(
        line for each in case.released[-_MOST:] for line in protected(each.release, each.entry)
    )
    versions = example.manifest["versions"]
    rows = _ROWS if case.has_rows else ""
    everything = "" if case.has_rows else ", the loss included"
    signers = [[who, "", "", ""] for who in ("Custodian", "Data protection officer")]
    return _PAGE.substitute(
        title=escape(printable(facts["name"] or "A release with differential privacy")),
        about=banner([each.entry for each in case.released]) + _table((), _about(case, facts)),
        protected=paragraphs([*promises, _AGAINST, _WEAK, GUESS])
        + _table(LOSSES, losses(case.state, case.entries)),
        others=_others(case),
        budget=paragraphs([f"{case.budget[0].upper()}{case.budget[1:]}."]) + _releases(case),
        errors=_errors(case),
        trust=paragraphs([each.format(**versions, rows=rows) for each in _TRUST]),
        verify=f"<p>{_VERIFY.format(**names, all=everything)}</p>",
        wrong=f"<p>{_WRONG.format(**names)}</p>",
        lines=_table(("", "name", "date", "signature"), signers),
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table of texts as HTML."""
    return TextTable("", titles, [[*map(printable, row)] for row in rows]).to_html()


def _about(case: Case, facts: Facts) -> list[list[str]]:
    """Returns rows with purpose, curator and the like, and which of them are not stated yet."""
    rows = []
    recorded = min(each.entry.recorded_at for each in case.released)[:10]
    for name, fact in FACTS.items():
        if not fact.title:
            continue
        said = ", ".join(facts[name]) if fact.is_list else facts[name]
        text = said or f"(not stated yet: the fact {name})"
        if name == "publication_date" and said and said < recorded:
            text += f" (before these releases, the first of which is of {recorded})"
        rows.append([fact.title, text])
    return rows


def _others(case: Case) -> str:
    """Returns a table of what others published, with this deployment among them."""
    this = Deployment(
        round_up(case.loss.epsilon),
        show(case.loss.delta) if case.loss.delta else "",
        ", ".join(filter(None, [case.unit.name, case.unit.period])),
        "this deployment: all releases" if case.is_many else "this release",
    )
    rows = []
    for each in sorted([*OTHERS, this]):
        delta = f" ({each.delta})" if each.delta else ""
        shown = [escape(printable(text)) for text in (show(each.epsilon) + delta, *each[2:])]
        if each is this:
            shown = [f"<b>{text}</b>" for text in shown]
        rows.append(f"<tr>{''.join(f'<td>{text}</td>' for text in shown)}</tr>")
    titles = "<tr><th>ε (δ)</th><th>unit</th><th>deployment</th></tr>"
    return f"<table>{titles}{''.join(rows)}</table><p>{escape(MEDIAN)}</p>"


def _releases(case: Case) -> str:
    """Returns a table of releases: those of this dossier and withdrawn ones, then the newest."""
    in_dossier = {each.entry.number for each in case.released}
    ranked = sorted(
        case.entries,
        key=lambda each: (each.number in in_dossier or bool(each.withdrawn), each.number),
        reverse=True,
    )
    rows = []
    for each in sorted(ranked[:_MOST], key=lambda each: each.number):
        remarks = [str(each.periods or ""), one_line(each.withdrawn, 2 * _LONGEST)]
        row = [
            f"{each.number}",
            one_line(each.name, _LONGEST),
            each.kind,
            each.charge.show(up=True),
            each.recorded_at[:10],
            "; ".join(filter(None, remarks)),
        ]
        rows.append(row)
    columns = ("entry", "name", "kind", "charge", "recorded", "periods; withdrawal")
    table = _table(columns, rows)
    unseen = ranked[_MOST:]
    if not unseen:
        return table
    withdrawn = sum(bool(each.withdrawn) for each in unseen)
    more = f"{counted(len(unseen), 'more release')}, {withdrawn:,} of them withdrawn."
    return table + paragraphs([more])


def _errors(case: Case) -> str:
    """Returns a table of the errors that were promised and met, and of what is left out and why."""
    rows = []
    for each in case.released[-_MOST:]:
        number = f"{each.entry.number}{' (withdrawn)' if each.entry.withdrawn else ''}"
        rows.append([number, promised(each), met(each), "; ".join(left_out(each))])
    table = _table(("entry", "promised before", "95% intervals", "what it is of"), rows)
    more = len(case.released) - _MOST
    if more <= 0:
        return table
    return table + paragraphs([f"{counted(more, 'more manifest')} in this dossier."])
