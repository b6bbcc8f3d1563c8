"""Values of a manifest, read strictly: a second opinion takes nothing for what it is not.

Errors are Python's own: `shoal.verdict.checked` turns them into one word for a damaged manifest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shoal import documents

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PACKED = {"type", "length", "data"}


def whole(value: object, least: int | None = None, most: int | None = None) -> int:
    """A whole number in a range, or ValueError; true and false are none.

    Example:
        >>> whole(3, 0, 5)
        3
    """
    if type(value) is not int:
        raise ValueError
    if (least is not None and value < least) or (most is not None and value > most):
        raise ValueError
    return value


def real(value: object) -> float:
    """A finite number, or ValueError; true and false are none.

    Example:
        >>> real(1)
        1.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def text(value: object) -> str:
    """A text, or TypeError.

    Example:
        >>> text("a")
        'a'
    """
    if not isinstance(value, str):
        raise TypeError
    return value


def integers(packed: documents.Document, what: str, length: int | None = None) -> NDArray[np.int64]:
    """Packed whole numbers from 0, as many as said, or ValueError.

    Example:
        >>> import numpy as np
        >>> integers(documents.pack_integers(np.array([3, 1])), "sizes", 2).tolist()
        [3, 1]
    """
    if packed.keys() != _PACKED:
        raise ValueError
    found = documents.unpack_integers(packed, what)
    if length is not None and len(found) != length:
        raise ValueError
    return found
