"""Plans and releases unbiased means of unbounded values."""
