"""Documents with one part replaced by something else."""

from typing import Any

from hypothesis import strategies as st

JUNK: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([]) | st.just({})
)


def change(document: Any, data: st.DataObject, *others: st.SearchStrategy[object]) -> Any:
    """Replaces one part somewhere in a document; returns its key and what was there."""
    at = document
    while True:
        key = data.draw(st.sampled_from([*at] if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    old = at[key]
    at[key] = data.draw(st.one_of(JUNK, *others, st.floats(allow_nan=False, allow_infinity=False)))
    return key, old
