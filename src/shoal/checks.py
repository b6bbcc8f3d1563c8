"""Arguments that many rooms take, refused in one way."""

from __future__ import annotations

from shoal.errors import InputError


def check_confidence(confidence: object) -> None:
    """Refuse what is no probability strictly between 0 and 1, before anything is spent.

    Raises:
        InputError: It is not.

    Example:
        >>> check_confidence(0.95)
    """
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not number or not 0 < float(str(confidence)) < 1:
        raise InputError(
            f"confidence is {str(confidence)[:40]}",
            "a number strictly between 0 and 1",
            "give for example confidence=0.95",
        )
