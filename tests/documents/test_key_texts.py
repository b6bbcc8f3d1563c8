"""Keys of documents: of their type, and one text for each."""

import pytest

from shoal.documents.key_texts import key_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", ["", "é"], [1, None, True]),
        ("bool", [True, False], [1, 0, "true"]),
        ("int8", [-128, 127], [-129, 128, 1.0, True, "1"]),
        ("uint64", [0, 2**64 - 1], [-1, 2**64]),
        ("date32[day]", ["2013-01-02"], ["20130102", "2013-W01-3", "2013-1-2", "", "nonsense"]),
        ("timestamp[us]", ["2013-01-02T06:00:00"], ["2013-01-02 06:00:00", "2013-01-02", "\n"]),
        (
            "timestamp[us, tz=UTC]",
            ["2013-01-02T06:00:00+00:00"],
            ["2013-01-02T06:00:00", "2013-01-02T06:00:00Z"],
        ),
        ("double", [], [1.0, 1]),
    ],
)
def test_only_the_one_text_of_a_key_is_read(
    kind: str, good: list[object], bad: list[object]
) -> None:
    """What another reader could take for another key, or for the same, is none."""
    assert [each for each in good if key_of(kind, each) is None] == []
    assert [each for each in bad if key_of(kind, each) is not None] == []
