"""The second opinion on unbiased means."""
