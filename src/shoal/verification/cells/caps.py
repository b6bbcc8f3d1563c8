"""Caps that a setting allows, by trying them all in exact arithmetic, for the second opinion.

Nothing is imported from planning, mechanisms, bounding, records or theory, as in `verify`.
"""

from __future__ import annotations

from fractions import Fraction

NAMES = ("median", "levy", "minimax", "surrogate")


def allowed(counts: list[int], setting: object) -> set[int]:
    """The caps that a cell with these counts may have.

    The minimax cap depends on the loss of the cell, which a manifest does not say: any of the
    counts may be it.
    """
    if isinstance(setting, int):
        return {min(setting, max(counts))}
    if setting == "median":
        return {sorted(counts, reverse=True)[-(-len(counts) // 2) - 1]}
    if setting == "minimax":
        return set(counts)
    users, total, most = len(counts), sum(counts), max(counts)
    tried = sorted({*counts, max(1, total // users), -(-total // users)})
    kept = _kept(sorted(counts), tried)
    if setting == "levy":
        # sum min(m_l, m)/sqrt(m), squared; means of counts are never better than counts.
        cost = {m: -Fraction(kept[m] ** 2, m) for m in set(counts)}
    elif setting == "surrogate":
        cost = {
            m: Fraction(-kept[m], total) + max(Fraction(m), Fraction(total, users)) / most
            for m in tried
        }
    else:
        return set()
    least = min(cost.values())
    return {min(m for m in cost if cost[m] == least)}


def _kept(ascending: list[int], caps: list[int]) -> dict[int, int]:
    """Records kept with each of some ascending caps, sum min(m_l, m)."""
    found, below, at = {}, 0, 0
    for cap in caps:
        while at < len(ascending) and ascending[at] <= cap:
            below += ascending[at]
            at += 1
        found[cap] = below + (len(ascending) - at) * cap
    return found
