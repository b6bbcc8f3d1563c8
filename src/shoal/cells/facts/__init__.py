"""Holds the request and the decision of a plan, and derives losses, errors and certificates."""
