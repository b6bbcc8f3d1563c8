"""How numbers are shown to people."""

import pytest

from shoal.files.text_table import text_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (45234.5, "45,230"),
        (1_234_567.0, "1,235,000"),
        (-1234.0, "-1,234"),
        (0.00001234, "0.00001234"),
        (0.0, "0"),
        (39.04, "39.04"),
        (1e300, "1e+300"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_numbers_are_read_without_exponents(value: float, text: str) -> None:
    """Large and small ones, but for those whose zeros nobody counts."""
    assert text_of(value) == text
