"""What no estimator of a mean can beat, private or not: bounds of plain statistics.

Units: the moment's size is 1. Proofs: `docs/theory/trilemma.md`.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.theory.problem import Setting


def normal_bound(setting: Setting) -> float:
    """RMSE over normal distributions with the largest allowed sigma.

    RMSE >= sigma / sqrt(n + 4 pi^2 sigma^2 / width^2), sigma^order E|Z|^order = 1: van Trees with
    the prior density proportional to cos^2 on the interval.

    Returns a lower bound on the RMSE, as a factor of the moment's size.
    """
    order = setting.order
    moment = order / 2 * math.log(2) + math.lgamma((order + 1) / 2) - math.log(math.pi) / 2
    sigma = math.exp(-moment / order)
    return sigma / math.sqrt(setting.n + (2 * math.pi * sigma / setting.width) ** 2)


def coin_bound(setting: Setting) -> float:
    """RMSE over X = v with probability p, else 0, p within h of 1/2: sharp for large n.

    RMSE^2 >= v^2 / (n/(1/4 - h^2) + pi^2/h^2) (van Trees), v = min(width/(2h), w) with
    w^-order = ((1/2 + h)^(order - 1) + (1/2 - h)^(order - 1))/4, the largest central moment at
    v = 1; best over h on a grid.

    Returns a lower bound on the RMSE, as a factor of the moment's size.
    """
    near = np.geomspace(1e-6, 0.499, 400)
    most = ((0.5 + near) ** (setting.order - 1) + (0.5 - near) ** (setting.order - 1)) / 4
    step = np.minimum(most ** (-1 / setting.order), setting.width / (2 * near))
    square = step**2 / (setting.n / (0.25 - near**2) + (math.pi / near) ** 2)
    return math.sqrt(float(square.max()))


def bit_bound(setting: Setting) -> float:
    """RMSE over X = v with probability p, else 0, any p: v / (2 (1 + sqrt(n))).

    The minimax error of a share (Hodges and Lehmann 1950), v = min(width, 4^(1/order)).

    Returns a lower bound on the RMSE, as a factor of the moment's size.
    """
    step = min(setting.width, 4 ** (1 / setting.order))
    return step / (2 * (1 + math.sqrt(setting.n)))


def printed_bound(setting: Setting) -> float:
    """1/sqrt(6 (n + 2)), as printed (paper 004, Proposition A.2.1); needs a width of 1, any order.

    Returns a lower bound on the RMSE, as a factor of the moment's size.
    """
    return 1 / math.sqrt(6 * (setting.n + 2)) if setting.width >= 1 else 0.0
