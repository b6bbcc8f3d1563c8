"""Optimal plans: what users keep and how much noise, by linear programs that prove themselves."""
