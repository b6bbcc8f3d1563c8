"""Chooses noise, weights and ranges for a request."""
