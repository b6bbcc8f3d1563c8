"""Plans and releases unbiased means of unbounded values; of bounded ones see `shoal.cells`."""
