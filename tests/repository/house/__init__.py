"""The house in figures: `python -m tests.repository.house` measures the shape of the source."""
