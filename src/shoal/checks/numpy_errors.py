"""What NumPy says about single numbers, which are private, on the way to a release."""

from __future__ import annotations

import numpy as np

# Decorates what computes with private values: a caller may have told NumPy to raise or to warn, as
# with `np.seterr(all="raise")`, and one user's tiny value would decide whether it does. And what
# reads documents, of which others may have made anything.
quietly = np.errstate(all="ignore")
