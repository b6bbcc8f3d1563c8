"""Plans of records, whether their counts are private or public, and files of any family."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, overload

from shoal import checks, documents
from shoal.data.counts import Counts
from shoal.data.records import Records
from shoal.documents.strict_json import strict
from shoal.errors import InputError
from shoal.files import Place
from shoal.privacy.budget import Amount
from shoal.release.envelope import MANIFEST, RECORD
from shoal.release.plan import Plan
from shoal.release.release import Release

if TYPE_CHECKING:
    from shoal.cells import plan as cells
    from shoal.distributions import plan as distributions
    from shoal.presence import plan as presence

# Options of public counts with which errors are certified, or only means are planned.
_CERTIFIED = ("error", "max_error", "method", "settings", "uninformative", "weights")


@overload
def plan(records: Counts, **asked: Any) -> cells.Plan: ...


@overload
def plan(records: Records, **asked: Any) -> cells.Plan | distributions.Plan | presence.Plan: ...


def plan(
    records: Records | Counts,
    *,
    epsilon: Amount | None = None,
    statistics: Sequence[str] | None = None,
    records_per_user: int | None = None,
    keys: Any = None,
    users: int | None = None,
    **more: Any,
) -> cells.Plan | distributions.Plan | presence.Plan:
    """Plans statistics of cells before anything private is read.

    **Private counts** (the default of `Records`): nothing is known of who has records where, so the
    cells are a public list, and the file is not opened. Each user is one vector of whole numbers
    whose sum is bounded, and the loss is the sum of these bounds divided by scales of noise: the
    same in all data sets.

    **Public counts**: users are bounded and noise is shared by the counts. With Laplace noise the
    loss is epsilon = max_l sum_i D_il/b_i, where user l moves number i by at most D_il and its
    noise has the scale b_i.

    Source: docs/theory/private-counts.md#one-user-one-vector;
    docs/theory/cells.md#user-clipped-mean, #balanced-plans and #optimal-plan;
    docs/theory/privacy.md#accounting.

    Args:
        records: The records. Of public counts, the counts are read, or may be given themselves; of
            private ones only names of columns, bounds and rules are used.
        epsilon: Largest privacy loss of any user, in all cells and statistics together. A float
            counts as its decimal.
        statistics: Of every cell. Private counts: `users`, `records`, `sum`, `mean`, `median`,
            `quantile(0.9)`, `share_above(60)`, `share_below(60)`, `share_between(20, 60)`,
            `histogram`; by default users and means. Public counts: `mean` (the default), `sum`,
            `std`, `variance`, `median`, `quantile(0.9)`, `share_above(60)`, `share_below(60)`,
            `share_between(20, 60)`, `histogram(20, 40, 60)`, `cdf(20, 40)`, `histogram`, `cdf`.
        records_per_user: Each user counts for at most so many of its records: all records of a user
            with m weigh min(m, records_per_user)/m, in both relations.
        keys: Private counts: the cells. A mapping with the keys of each cell rule, of which all
            combinations are cells, or a table or file with a row for each cell. Rules of which all
            keys are known, such as `weekday`, may be left out.
        users: Private counts: about how many users there are, from an earlier release or common
            knowledge and not from these records. A wrong number costs accuracy, never privacy.
        **more: Options of one relation.

            Private counts: `pieces` (of the private range, for medians and the like; 8 or 16),
            `periods` (those that are answered and charged, if the records have a period: names, or
            "2026-01..2026-12"; `users` is then about how many users in periods there are), `like`
            (an earlier release, or its manifest, as a guide: nothing is spent on a look and a
            range, and what is not given is as it was there; "last": `shoal.publish` takes the last
            release from the second one on), `delta` (in place of keys: the cells that enough users
            have are found, and delta is the chance that epsilon does not hold), `min_users` (cells
            with a smaller noisy number of users are marked).

            Public counts: `bounds` (range of the values, if counts are given in place of records),
            `objective` (`typical` or `worst_case`: the error to minimise, expected of ordinary
            values or certified in every data set), `max_error` (cells with a larger error, such as
            "5%" of the range, are left out), `error` (the largest certified error, in place of
            epsilon), `range` (`tight` or `loose`: whether values fill the bounds), `min_users` (the
            fewest users of a cell, by default three) and `min_records`, `uninformative` (`drop`,
            `keep` or `refuse` cells that are no better than guessing), `weights` (importance of
            cells by label), `method` and its `settings`, `delta`, `tick_bits`, and `source`, the
            description of the records if counts are given.

            Methods: `user_clipped`, `optimal` (by linear programming, with a proof), `clip_user`
            (from the paper); with every record `balanced`, `equalised`, `uniform` (from the paper);
            for means alone `adaptive`, `array_averaging`, `opt_array_averaging`,
            `worst_case_optimal`, `levy`, `quantile`, `akmv`, `baseline`.

    Returns:
        A plan whose `epsilon` never exceeds the one asked for: print it, then `release`.

    Raises:
        InputError: An argument is not usable, or no cell is left.
        DataError: Public counts cannot be read.

    Guarantees: G-LOSS, G-BOUND, G-PURE.

    Example:
        >>> import shoal
        >>> visits = shoal.Records(
        ...     "visits.csv", user="card", value="minutes", bounds=(0, 240), by="branch"
        ... )
        >>> found = shoal.plan(visits, keys={"branch": ["North", "South"]}, users=5000, epsilon=1)
        >>> print(found)  # doctest: +ELLIPSIS
        Noise will be added to users, mean of 2 cells, epsilon 1 in all.
        Protected: that one card is in the data at all, with all its records.
        ...
        >>> counts = shoal.Counts.from_counts(["a", "b", "c"], [1, 1, 1], [2, 2, 4])
        >>> found = shoal.plan(counts, bounds=(0, 10), epsilon=8, objective="worst_case")
        >>> found.method, found.epsilon <= 8, found.worst_case_error.round(2).tolist()
        ('optimal', True, [0.63])
    """
    is_private = isinstance(records, Records) and records.relation == "private"
    given = {
        "statistics": statistics,
        "records_per_user": records_per_user,
        "keys": keys,
        "users": users,
    }
    # What is empty is as good as left out.
    empty: tuple[Any, ...] = (None, {}, [], ())
    every = given | more
    asked = {name: each for name, each in every.items() if each not in empty}
    like = asked.get("like")
    if like is not None and not isinstance(like, Release) and str(like) != "last":
        asked["like"] = load(like)
    family = family_of(asked, private=is_private).plan
    if is_private and not {"keys", "users", "delta"} & {*asked} and like in (None, "last"):
        raise InputError(
            "the counts of these records are private, so that nothing is known of them",
            'give keys= and about how many users there are, such as keys={"branch": ["North"]}, '
            'users=5000; or counts="public" with the records, if everybody may know who has how '
            "many records in which cell",
        )
    _check_options(asked, family, private=is_private)
    if epsilon is not None:
        asked["epsilon"] = epsilon
    elif is_private:
        raise InputError(
            "no epsilon is given", "give the privacy loss of a user, such as epsilon=1"
        )
    made: cells.Plan | distributions.Plan | presence.Plan = family(records, **asked)
    return made


def family_of(asked: Mapping[str, Any], *, private: bool) -> Any:
    """Returns the module that plans what is asked; others are not loaded."""
    if private:
        from shoal.presence import plan as presence

        return presence
    statistics = checks.items(asked.get("statistics", ["mean"]), "statistics", least=1)
    shares = [each for each in statistics if str(each).startswith("share_above")]
    is_certified = asked.get("objective") == "worst_case" or any(
        asked.get(each) is not None for each in _CERTIFIED
    )
    others = {*statistics} - {"mean", "variance", *shares}
    if not others and (is_certified or [*statistics] == ["mean"]):
        from shoal.cells import plan as cells

        return cells
    from shoal.distributions import plan as distributions

    return distributions


def _check_options(asked: Mapping[str, Any], family: Any, *, private: bool) -> None:
    """Refuse options of the other relation, which say how the counts were declared."""
    # The first parameter is the records.
    options = [*signature(family).parameters][1:]
    unknown = [name for name in asked if name not in options]
    if not unknown:
        return
    if not private and {*unknown} & {*_CERTIFIED}:
        raise InputError(
            f"{', '.join(unknown)} is for mean, variance and share_above(...) alone",
            "leave it out, or leave out the other statistics",
        )
    options_of_other = signature(family_of(asked, private=not private).plan).parameters
    elsewhere = [name for name in unknown if name in options_of_other]
    if elsewhere:
        declared, needed = ("private", "public") if private else ("public", "private")
        raise InputError(
            f"{', '.join(elsewhere)} is for {needed} counts, and the counts are {declared}",
            f'leave it out, or give counts="{needed}" with the records',
        )
    checks.keywords(dict(asked), options, "plan")


def load(path: Place) -> Plan[Any, Any] | Release[Any, Any]:
    """Read a plan, a manifest or a record, of cells, trials or means.

    Args:
        path: A file that `save`, `write_manifest` or `write_record` wrote.

    Returns:
        The plan, or the release.

    Raises:
        DocumentError: Missing, damaged, or another document.

    Guarantees: G-VERIFY.

    Example:
        >>> import shoal
        >>> shoal.load("absent.json")
        Traceback (most recent call last):
        shoal.errors.DocumentError: ...
    """
    from shoal.cells import plan as cells
    from shoal.distributions import plan as distributions
    from shoal.means.plan import UnbiasedPlan
    from shoal.presence import plan as presence
    from shoal.trials.plan import Plan as TrialPlan
    from shoal.verification.rederive import FAMILIES

    data = documents.read_bytes(path, "document")
    found: Any = strict(data, f"document {os.fspath(path)!r}")
    schema = str(found.get("schema")) if isinstance(found, dict) else ""
    if schema in (MANIFEST, RECORD):
        return FAMILIES.get(str(found.get("kind")), cells.Release).of_file(path, data, found)
    families: tuple[type[Plan[Any, Any]], ...]
    families = (cells.Plan, distributions.Plan, presence.Plan, TrialPlan, UnbiasedPlan)
    for family in families:
        if family.document_model.model_fields["schema_"].default == schema:
            return family.load(path)
    # No document with another schema passes this check.
    documents.expect(found, MANIFEST, "the plan, manifest or record")
    raise AssertionError(schema)
