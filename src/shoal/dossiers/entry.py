"""An entry for the public registry of deployments of differential privacy.

Its fields are those of the form of July 2026 (github.com/opendp/deployments-registry-data). A tier
says how complete an entry is, as the registry's schema defines it: 1 says what was published by
whom, 2 also what is protected and how strongly, 3 also how.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from shoal import documents
from shoal.dossiers.case import Case, Released
from shoal.dossiers.facts import Facts
from shoal.privacy.budget import round_up
from shoal.privacy.unit import EACH_ROW
from shoal.report_page import PUBLIC

MOST_TIER = 3
_SLUG = re.compile(r"[^a-z0-9]+")
_NOISE = (
    "drawn by the exact samplers of OpenDP {opendp} on whole numbers, with randomness of the "
    "operating system: no floating-point number is added to a value"
)
# What happens to numbers after the mechanism, by family.
_AFTERWARDS = {
    "cells": "Values are posterior medians given the noisy numbers of all cells; cells whose own "
    "number is not reliable show the number that all cells have in common, moved towards their "
    "own. Intervals follow from the noise and from the noisy numbers. No private value is read "
    "for it.",
    "trial": "Effects, standard errors and intervals are computed from what was drawn and from the "
    "public design. No private value is read for it.",
    "mean": "The mean and its intervals are computed from the noisy whole numbers. No private "
    "value is read for it.",
}
_ACTORS = (
    "The custodian holds the records and the ledger, and is trusted. Auditors, whom the custodian "
    "chooses, may be given the record of a release: public counts without names, no values. "
    "Readers have tables and manifests, and may know all other records, have any computer, and "
    "work together."
)
_ACCESS = "Readers have what the custodian published; nobody asks questions of the records."
_COMPOSITION = (
    "Within a release the losses of each unit are added up over all of its numbers, exactly, in "
    "fractions{gaussian}; the largest is charged. Over releases the ledger adds up the charges "
    "(basic composition), and refuses what exceeds the budget."
)
_GAUSSIAN = "; of Gaussian noise rho is added up, and turned into epsilon and delta at the end"


class Field(NamedTuple):
    """A field of the form: the tier that needs it (0 for none), and what fills it.

    That is a fact by its name, or a function of the case and the facts.
    """

    tier: int
    source: str | Callable[[Case, Facts], Any]


def entry_of(case: Case, facts: Facts) -> documents.Document:
    """The entry; what nobody knows is empty."""
    found: dict[str, Any] = {}
    for path, field in FIELDS.items():
        *folders, name = path.split(".")
        place = found
        for each in folders:
            place = place.setdefault(each, {})
        source = field.source
        place[name] = facts[source] if isinstance(source, str) else source(case, facts)
    found["tier"] = tier_of(found)
    return found


def tier_of(entry: Mapping[str, Any]) -> int | None:
    """The highest tier whose fields, and those of lower tiers, are filled in; None if none is."""
    for tier in range(MOST_TIER, 0, -1):
        if not [*missing_for(entry, tier)]:
            return tier
    return None


def missing_for(entry: Mapping[str, Any], tier: int) -> Iterator[str]:
    """The facts, by their names, that a tier needs and an entry lacks."""
    for path, field in FIELDS.items():
        value: Any = entry
        for name in path.split("."):
            value = value[name]
        if 0 < field.tier <= tier and not value:
            yield field.source if isinstance(field.source, str) else path.rpartition(".")[2]


def yaml_of(entry: documents.Document) -> str:
    """The entry as the registry reads it: one line a text, so that none is folded."""
    import yaml

    text: str = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=10**6)
    return text


def _domain(each: Released) -> str:
    """Which data sets a release could have been of."""
    records = each.manifest["records"]
    published: Any = each.release.published
    if each.family == "trial":
        return f"Any outcomes {records['outcome']} of {published.units:,} units in the same design"
    if each.family == "mean":
        return f"Any finite values {records['value']} of {published.users:,} users"
    request = published.basis.request
    low, high = request.bounds
    by = ", ".join(records["cell"]) or "nothing"
    return (
        f"Any values {records['value']} from {low:g} to {high:g} (values beyond are moved to the "
        f"nearer end) of each {records['user']}, by {by}, with the same records in each cell"
    )


def _mechanism(each: Released) -> str:
    """What was drawn, and by what."""
    versions = each.manifest["versions"]
    noise = _NOISE.format(**versions)
    published: Any = each.release.published
    shoal = f"shoal {versions['shoal']}"
    if each.family == "trial":
        drawn = "randomised response or noise, in whole numbers, with randomness of the operating "
        return f"{published.mechanism} of {shoal}: {drawn}system; noise is {noise}"
    if each.family == "mean":
        return f"{published.method} of {shoal}: noise {noise}"
    basis = published.basis
    first = (
        "a range or radius is selected by permute-and-flip, its loss included; then "
        * basis.selects
    )
    return (
        f"{basis.method} of {shoal}: {first}{basis.noise} noise, whose scale is 2^{basis.bits} "
        f"lattice steps, {noise}"
    )


def _each(said: Callable[[Released], str]) -> Callable[[Case, Facts], str]:
    """What is said of all releases, each sentence once."""
    return lambda case, facts: ". ".join(dict.fromkeys(map(said, case.released))) + "."


def _unit(case: Case, facts: Facts) -> str:
    period = case.unit.period
    name = "row" if case.unit.name == EACH_ROW else case.unit.name
    return name if period is None else f"{name}-{period}"


def _unit_details(case: Case, facts: Facts) -> str:
    meant = f" One {case.unit.name} is {facts['unit']}." if facts["unit"] else ""
    said = (each.manifest["guarantee"]["neighbours"] for each in case.released)
    neighbours = dict.fromkeys(each.removeprefix("values: ") for each in said)
    return f"Protected: {case.unit}.{meant} In neighbouring data {'; '.join(neighbours)}."


def _parameters(case: Case, facts: Facts) -> dict[str, float]:
    loss = case.loss
    found = {"epsilon": round_up(loss.epsilon)}
    return found | ({"delta": round_up(loss.delta)} if loss.delta else {})


def _parameter_details(case: Case, facts: Facts) -> str:
    charges = (
        f"{each.entry.name or each.place}: {each.entry.charge.show(up=True)}"
        for each in case.released
    )
    return (
        f"Of a release: {'; '.join(charges)}. Of all releases together at most "
        f"{case.budget}, for {case.whose}."
    )


def _releases(case: Case, facts: Facts) -> str:
    entries = case.delivered
    first, last = entries[0], entries[-1]
    names = [each.name or each.recorded_at[:10] for each in (first, last)]
    which = names[0] if len(entries) == 1 else f"{names[0]} to {names[1]}"
    spent, left = case.spent_and_left
    withdrawn = [
        f" {each.name or each.number} was {why}."
        for each in entries
        if (why := case.withdrawal(each))
    ]
    return (
        f"Releases so far: {len(entries):,} ({which}), recorded {first.recorded_at[:10]} to "
        f"{last.recorded_at[:10]}. Budget: {case.budget}, for {case.whose}. Spent: {spent}. Left: "
        f"{left}. New budget: {case.comes_back}.{''.join(withdrawn)}"
    )


def _source_type(case: Case, facts: Facts) -> str:
    return facts["data_source_type"] or ("Dynamic" if case.unit.period else "")


def _composition(case: Case, facts: Facts) -> str:
    return _COMPOSITION.format(gaussian=_GAUSSIAN if case.loss.delta else "")


def _before(case: Case, facts: Facts) -> str:
    own = (
        "Methods and noise scales were chosen from public facts and simulations with made-up "
        "values; no private value was read for it, so no loss was spent on it."
    )
    return f"{facts['preprocessing']} {own}".strip()


def _notes(case: Case, facts: Facts) -> str:
    records = (
        f"{each.entry.name or each.place} {each.manifest['record_sha256']}"
        for each in case.released
    )
    return f"{facts['notes']} SHA-256 of records: {'; '.join(records)}.".strip()


def _product(case: Case, facts: Facts) -> str:
    # A table of randomised outcomes has a row for each unit.
    units = any(each.manifest["kind"] in ("table", "cluster_prior") for each in case.released)
    return "Dataset" if units else "Summary statistics"


FIELDS = {
    "url_slug": Field(0, lambda case, facts: _SLUG.sub("-", facts["name"].lower()).strip("-")),
    "status": Field(0, lambda case, facts: "Draft"),
    "tier": Field(0, lambda case, facts: None),
    "deployment.basic.name": Field(1, "name"),
    "deployment.basic.data_curators": Field(1, "curators"),
    "deployment.basic.intended_use": Field(1, "intended_use"),
    "deployment.basic.data_product_type": Field(1, _product),
    "deployment.basic.data_product_region": Field(1, "region"),
    "deployment.basic.description": Field(1, "description"),
    "deployment.basic.publication_date": Field(1, "publication_date"),
    "deployment.basic.data_product_sector": Field(1, "sector"),
    "deployment.dp_variant.variant_name": Field(
        2, lambda case, facts: "Approximate DP" if case.loss.delta else "Pure DP"
    ),
    "deployment.dp_variant.data_domain": Field(3, _each(_domain)),
    "deployment.dp_variant.unprotected_quantities": Field(
        3, _each(lambda each: f"Bounds, rules and names of columns, and {PUBLIC[each.family]}")
    ),
    "deployment.privacy_loss.privacy_unit": Field(2, _unit),
    "deployment.privacy_loss.privacy_unit_details": Field(3, _unit_details),
    "deployment.privacy_loss.privacy_parameters": Field(2, _parameters),
    "deployment.privacy_loss.privacy_parameters_details": Field(3, _parameter_details),
    "deployment.deployment_model.model_name": Field(2, lambda case, facts: "Central"),
    "deployment.deployment_model.actors": Field(3, lambda case, facts: _ACTORS),
    "deployment.deployment_model.release_type": Field(
        2, lambda case, facts: "Many releases" if case.is_many else "One release"
    ),
    "deployment.deployment_model.release_type_details": Field(3, _releases),
    "deployment.deployment_model.data_source_type": Field(2, _source_type),
    "deployment.deployment_model.access_type": Field(2, lambda case, facts: "Non-interactive"),
    "deployment.deployment_model.access_type_details": Field(3, lambda case, facts: _ACCESS),
    "deployment.accounting.post_processing": Field(
        3, _each(lambda each: _AFTERWARDS[each.family].rstrip("."))
    ),
    "deployment.accounting.composition": Field(3, _composition),
    "deployment.implementation.preprocessing_and_hyperparameter_tuning": Field(3, _before),
    "deployment.implementation.mechanisms": Field(3, _each(_mechanism)),
    "deployment.implementation.justification": Field(3, "justification"),
    "deployment.administrative.sources": Field(0, lambda case, facts: "; ".join(facts["sources"])),
    "deployment.administrative.notes": Field(0, _notes),
    "deployment.administrative.registry_authors": Field(1, "registry_authors"),
}
