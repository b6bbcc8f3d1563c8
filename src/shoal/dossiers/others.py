"""What others published: the registry of deployments of differential privacy, July 2026."""

from typing import NamedTuple


class Deployment(NamedTuple):
    """A published deployment; an epsilon means nothing without its unit."""

    epsilon: float
    delta: str
    unit: str
    name: str


OTHERS = (
    Deployment(0.1, "", "user account, month", "Wikimedia, Russian editor activity, 2023"),
    Deployment(0.66, "", "user, trip", "Google, shared mobility, 2022"),
    Deployment(1, "", "contribution-bounded day", "Wikimedia, historical pageviews, 2023"),
    Deployment(1.45, "1e-5", "user", "Meta, URL shares, 2020"),
    Deployment(2.19, "1e-5", "user", "Google, vaccine searches, 2021"),
    Deployment(2.64, "", "user, day", "Google, community mobility, 2020"),
    Deployment(4.72, "5e-9", "user", "Recurve, energy, 2020"),
    Deployment(4.8, "4e-10", "event, month", "LinkedIn, hiring, 2020"),
    Deployment(8, "", "user", "Apple, lookup hints, 2016"),
    Deployment(9.98, "", "birth", "Israel, live births of 2014, 2024"),
    Deployment(34.9, "7e-9", "user, month", "LinkedIn, audience engagement, 2020"),
)
MEDIAN = "Of 27 entries with an ε the median is 2.64. An ε means nothing without its unit."
