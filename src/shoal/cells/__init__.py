"""Statistics of many cells: plans from public counts, releases, certified and typical errors."""
