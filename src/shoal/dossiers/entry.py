"""Writes an entry for the public registry of deployments of differential privacy.

Its fields are those of the form of July 2026 (github.com/opendp/deployments-registry-data). A tier
says how complete an entry is, as the registry's schema defines it: 1 says what was published by
whom, 2 also what is protected and how strongly, 3 also how.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from shoal.dossiers.case import Case, Released
from shoal.dossiers.facts import Facts, tier_of
from shoal.files.text_table import text_of
from shoal.privacy.budget import round_up
from shoal.privacy.unit import EACH_ROW
from shoal.report_page import PUBLIC, losses

_SLUG = re.compile(r"[^a-z0-9]+")
_NOISE = (
    "drawn by the exact samplers of OpenDP {opendp} on whole numbers, with randomness of the "
    "operating system: no floating-point number is added to a value"
)
# What happens to numbers after the mechanism, by family.
_AFTERWARDS = {
    "presence": "Means, quantiles and shares are ratios of noisy weights; cells whose noise is "
    "larger than cells differ by show the number that all cells have in common, moved towards "
    "their own.",
    "cells": "Values are posterior medians given the noisy numbers of all cells; cells whose own "
    "number is not reliable show the number that all cells have in common, moved towards their "
    "own. Intervals follow from the noise and from the noisy numbers",
    "trial": "Effects, standard errors and intervals are computed from what was drawn and from the "
    "public design",
    "mean": "The mean and its intervals are computed from the noisy whole numbers",
}
_NOTHING_READ = "No private value is read for it"
_ACTORS = (
    "The custodian holds the records and the ledger, and is trusted.{auditors} Readers have tables "
    "and manifests, and may know all other records, have any computer, and work together."
)
_AUDITORS = (
    " Auditors, whom the custodian chooses, may be given the record of a release: facts of every "
    "unit, such as how many records it has in which cell, without names and values, and personal "
    "data all the same."
)
_ACCESS = "Readers have what the custodian published; nobody asks questions of the records."
_COMPOSITION = (
    "Within a release the losses of each unit are added up over all of its numbers, exactly, in "
    "fractions{gaussian}; the largest is charged. Over releases the ledger adds up the charges "
    "(basic composition), and refuses what exceeds the budget."
)
_GAUSSIAN = "; of Gaussian noise rho is added up, and turned into epsilon and delta at the end"
_BEFORE = (
    "Methods and noise scales were chosen from public facts and simulations with made-up values; "
    "no private value was read for it, so no loss was spent on it."
)


def entry_of(case: Case, facts: Facts) -> str:
    """Returns the entry as the registry reads it: each text is one line, and unknown ones empty."""
    import yaml

    deployment = {
        "basic": _basic(case, facts),
        "dp_variant": {
            "variant_name": "Approximate DP" if case.loss.delta else "Pure DP",
            "data_domain": _each(case, _domain),
            "unprotected_quantities": _each(case, _unprotected),
        },
        "privacy_loss": _privacy_loss(case, facts),
        "deployment_model": {
            "model_name": "Central",
            "actors": _ACTORS.format(auditors=_AUDITORS if case.has_rows else ""),
            "release_type": "Many releases" if case.is_many else "One release",
            "release_type_details": _releases(case),
            "data_source_type": facts["data_source_type"],
            "access_type": "Non-interactive",
            "access_type_details": _ACCESS,
        },
        "accounting": {
            "post_processing": _sentences(
                *(_AFTERWARDS[each.family] for each in case.released), _NOTHING_READ
            ),
            "composition": _COMPOSITION.format(gaussian=_GAUSSIAN if case.loss.delta else ""),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _sentences(facts["preprocessing"], _BEFORE),
            "mechanisms": _each(case, _mechanism),
            "justification": facts["justification"],
        },
        "administrative": _administrative(case, facts),
    }
    entry = {
        "url_slug": _SLUG.sub("-", facts["name"].lower()).strip("-"),
        "status": "Draft",
        "tier": tier_of(facts),
        "deployment": deployment,
    }
    # No text is as long as this width, at which a line would be broken.
    text: str = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=10**6)
    return text


def _basic(case: Case, facts: Facts) -> dict[str, Any]:
    """Returns what was published, by whom and what for."""
    # A table of randomised outcomes has a row for each unit.
    has_rows = any(each.manifest["kind"] in ("table", "cluster_prior") for each in case.released)
    return {
        "name": facts["name"],
        "data_curators": facts["curators"],
        "intended_use": facts["intended_use"],
        "data_product_type": "Dataset" if has_rows else "Summary statistics",
        "data_product_region": facts["region"],
        "description": facts["description"],
        "publication_date": facts["publication_date"],
        "data_product_sector": facts["sector"],
    }


def _privacy_loss(case: Case, facts: Facts) -> dict[str, Any]:
    """Returns what is protected, and how strongly."""
    parameters = {"epsilon": round_up(case.loss.epsilon)}
    if case.loss.delta:
        parameters["delta"] = round_up(case.loss.delta)
    name = "row" if case.unit.name == EACH_ROW else case.unit.name
    return {
        "privacy_unit": f"{name}-{case.unit.period}" if case.unit.period else name,
        "privacy_unit_details": _unit_details(case, facts),
        "privacy_parameters": parameters,
        "privacy_parameters_details": _parameter_details(case),
    }


def _administrative(case: Case, facts: Facts) -> dict[str, Any]:
    """Returns sources, notes with the digests of records, and authors of the entry."""
    sha256 = (f"{_name(each)} {each.manifest['record_sha256']}" for each in case.released)
    return {
        "sources": "; ".join(facts["sources"]),
        "notes": _sentences(facts["notes"], f"SHA-256 of records: {'; '.join(sha256)}"),
        "registry_authors": facts["registry_authors"],
    }


def _unprotected(each: Released) -> str:
    """Returns what a release treats as public."""
    return f"Bounds, rules and names of columns, and {PUBLIC[each.family]}"


def _sentences(*texts: str) -> str:
    """Returns the texts that are not empty, each once and with a full stop."""
    found = dict.fromkeys(filter(None, texts))
    return " ".join(each if each[-1] in ".!?" else f"{each}." for each in found)


def _each(case: Case, said: Callable[[Released], str]) -> str:
    """Returns what is said of each release, with no sentence twice."""
    return _sentences(*map(said, case.released))


def _name(each: Released) -> str:
    """Returns the name of a release in texts."""
    return each.entry.name or each.place


def _domain(each: Released) -> str:
    """Returns which data sets the release might have been made from."""
    records = each.manifest["records"]
    published = each.release.published
    if each.family == "trial":
        return f"Any outcomes {each.values} of {published.units:,} units in the same design"
    if each.family == "mean":
        return f"Any finite values of {each.values} of {published.users:,} users"
    if each.family == "presence":
        return (
            f"Any records of any {records['user']}; answered are the cells of a public list, of "
            f"{', '.join(each.release.plan.request.statistics)}"
        )
    low, high = published.request.bounds
    by = ", ".join(records["cell"]) or "nothing"
    return (
        f"Any values of {each.values} from {text_of(low, 12)} to {text_of(high, 12)} (values "
        f"beyond are moved to the nearer end) of each {records['user']}, by {by}, with the same "
        "records in each cell"
    )


def _mechanism(each: Released) -> str:
    """Returns what was drawn, and by which mechanism."""
    versions = each.manifest["versions"]
    noise = _NOISE.format(**versions)
    published = each.release.published
    shoal = f"shoal {versions['shoal']}"
    if each.family == "trial":
        drawn = "randomised response or noise, in whole numbers, with randomness of the operating "
        return f"{published.mechanism} of {shoal}: {drawn}system; noise is {noise}"
    if each.family == "mean":
        return f"{published.method} of {shoal}: noise {noise}"
    if each.family == "presence":
        return (
            f"vectors of users with a bounded sum, of {shoal}: looks and answers have discrete "
            "Laplace noise, users noise of a ball where no cap is set, and a range of values is "
            f"selected by permute-and-flip, its loss included; {noise}"
        )
    mechanisms = []
    for part in published.parts.values():
        basis = part.basis
        first = ""
        if basis.selects:
            first = "a range or radius is selected by permute-and-flip, its loss included; then "
        scale = f"{basis.noise} noise, whose scale is 2^{basis.bits} lattice steps"
        mechanisms.append(f"{basis.method} of {shoal}: {first}{scale}, {noise}")
    if getattr(published, "bins", None) is not None:
        mechanisms.append(f"bins of {shoal}: discrete Laplace noise of sum zero, {noise}")
    return "; ".join(mechanisms)


def _unit_details(case: Case, facts: Facts) -> str:
    """Returns what is protected, and which data sets are neighbours."""
    said = (each.manifest["guarantee"]["neighbours"] for each in case.released)
    # What stands before the colon is said under another title.
    neighbours = dict.fromkeys(each.partition(": ")[2] for each in said)
    # All releases of a ledger have the same kind of periods.
    periods = case.released[0].entry.periods
    return _sentences(
        f"Protected: {case.unit}",
        facts["unit"] and f"What one {case.unit.name} is: {facts['unit']}",
        f"Periods are {periods.clocks or periods.rule}" if periods else "",
        f"In neighbouring data {'; '.join(neighbours)}",
    )


def _parameter_details(case: Case) -> str:
    """Returns what each release costs, and what all of them may cost."""
    charges = (f"{_name(each)}: {each.entry.charge.show(up=True)}" for each in case.released)
    return f"Of a release: {'; '.join(charges)}. Of all releases together at most {case.budget}."


def _releases(case: Case) -> str:
    """Returns what was released so far, what was spent and what is left."""
    first = case.entries[0]
    last = case.entries[-1]
    names: Iterable[str] = dict.fromkeys(
        each.name or each.recorded_at[:10] for each in (first, last)
    )
    lost = []
    for about, _, lost_at_most, left, _ in losses(case.state, case.entries):
        lost.append(f"{about}: {lost_at_most}" + (f", {left} is left" if left else ""))
    withdrawn = (
        f"{each.name or each.number} was {each.withdrawn}"
        for each in case.entries
        if each.withdrawn
    )
    return _sentences(
        f"Releases so far: {len(case.entries):,} ({' to '.join(names)}), recorded "
        f"{first.recorded_at[:10]} to {last.recorded_at[:10]}",
        f"Budget: {case.budget}",
        f"Lost at most: {'; '.join(lost)}",
        *withdrawn,
    )
