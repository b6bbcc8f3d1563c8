"""What no private mean can beat, and which estimator comes closest.

`trilemma` is a lower bound on the error given users, budget, bias and a moment; `regime` names the
estimator with the least certified error. `shuffled` is privacy amplification by shuffling,
`shuffled_trilemma` the bound it proves. See `docs/theory/means.md#the-trilemma`.
"""

from shoal.theory.problem import Setting
from shoal.theory.regimes import Regime, regime
from shoal.theory.shuffling import Shuffled, ShuffledBound, shuffled, shuffled_trilemma
from shoal.theory.trilemma import Term, Trilemma, distance_to_bound, trilemma

__all__ = [
    "Regime",
    "Setting",
    "Shuffled",
    "ShuffledBound",
    "Term",
    "Trilemma",
    "distance_to_bound",
    "regime",
    "shuffled",
    "shuffled_trilemma",
    "trilemma",
]
