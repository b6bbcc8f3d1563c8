"""Lower bounds on the error, which no private mean can beat.

`trilemma` is a lower bound on the error given users, budget, bias and a moment;
`shoal.unbiased.recommend` says which estimator comes closest. `shuffled` is privacy amplification
by shuffling, `shuffled_trilemma` the bound it proves. See `docs/theory/means.md#the-trilemma`.
"""

from shoal.theory.problem import Setting
from shoal.theory.shuffling import Shuffled, ShuffledBound, shuffled, shuffled_trilemma
from shoal.theory.trilemma import Term, Trilemma, distance_to_bound, trilemma

__all__ = [
    "Setting",
    "Shuffled",
    "ShuffledBound",
    "Term",
    "Trilemma",
    "distance_to_bound",
    "shuffled",
    "shuffled_trilemma",
    "trilemma",
]
