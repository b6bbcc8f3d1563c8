"""One mean of values without bounds: which estimator, with which certificate, and the release."""

from __future__ import annotations

import numpy as np

from shoal import unbiased


def main() -> None:
    """Compare the estimators before any value is read, then release once."""
    moments = [unbiased.Moment(2, 10), unbiased.Moment(8, 20)]  # known in public
    advice = unbiased.recommend(
        20_000, epsilon=1, delta="1e-6", moment=moments, interval=(120, 220)
    )
    print(advice)

    heights = np.random.default_rng(1).normal(171, 9, 20_000)
    print(unbiased.symmetric_mean(heights, moment=moments, epsilon=1, delta="1e-6"))


if __name__ == "__main__":
    main()
