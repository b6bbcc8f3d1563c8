"""Means of values without bounds: unbiased, or with a bias that the caller chooses."""
