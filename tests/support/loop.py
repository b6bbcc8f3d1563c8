"""Many small cases in one test."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def loop_over(names: str | Iterable[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, but one test that loops; the failing case is noted."""
    keys = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    rows = [
        case.values if hasattr(case, "marks") else case if len(keys) > 1 else (case,)
        for case in cases
    ]

    def decorate(test: Test) -> Test:
        def loop(**fixtures: Any) -> None:
            for row in rows:
                try:
                    test(**fixtures, **dict(zip(keys, row, strict=True)))
                except BaseException as error:
                    error.add_note(f"with {', '.join(keys)} = {row!r:.200}")
                    raise

        loop.__dict__.update(vars(test))
        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name not in keys]
        loop.__signature__ = signature.replace(parameters=others)
        loop.__name__, loop.__doc__, loop.__module__ = test.__name__, test.__doc__, test.__module__
        return loop

    return decorate
