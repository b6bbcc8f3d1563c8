"""Who chooses noise, weights and intervals for a request."""
