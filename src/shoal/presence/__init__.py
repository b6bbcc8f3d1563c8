"""Private counts: statistics of public cells that do not tell who was there.

A statistic has its name in `request`, its formula in `values` or `totals`, its row in `estimates`.
"""
