"""Gaussian noise for users' vectors wherever it may be drawn, whatever its error."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from shoal.cells.planners import user_clipped


@contextmanager
def always_gaussian() -> Iterator[None]:
    """Plans with a delta have Gaussian noise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            user_clipped, "typical_errors", lambda plan: np.array([float(not plan.gaussian)])
        )
        yield
