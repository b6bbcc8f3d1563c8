"""Hostile arguments to everything that is public: only errors of shoal's own, and nothing spent.

python -m tests.evidence.fuzz_api 1000 --seed 7          # a run
python -m tests.evidence.fuzz_api --case 123 --seed 7    # one case again
"""

from __future__ import annotations

import random
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shoal
from tests.evidence.finding import Outcome
from tests.evidence.fuzz_kit import Kit
from tests.evidence.fuzz_rails import TooSlowError, main, rails
from tests.evidence.fuzz_targets import PRIVATE, TARGETS, touch
from tests.evidence.fuzz_values import CANARIES, pool

if TYPE_CHECKING:
    from tests.evidence.finding import Progress
    from tests.evidence.fuzz_targets import Target

NAME = "hostile arguments to the Python interface"
PROMISES = ("G-FUZZ", "G-REFUSE", "G-CANARY")
UNIT = "calls"
FULL, REDUCED = 100_000, 2_000
PARTS = 20
_SECONDS = 30
_LONGEST = 2200
# What these do is the caller's own: only what cannot be called is refused.
_CALLED = ("progress", "distribution", "assumed")
_LEDGER = 0.3
_VALUES = pool()


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """That many calls with one to three hostile arguments each."""
    kit, failures = Kit(folder), []
    with rails(folder):
        for number in range(size):
            found = case(kit, seed, number)
            if found:
                failures.append(f"seed {seed} case {number}: {found}")
            progress(1)
    return Outcome(size, tuple(failures))


def case(kit: Kit, seed: int, number: int) -> str:
    """One call; what it broke, or nothing."""
    dice = random.Random(f"{seed} {number}")  # noqa: S311
    target = dice.choice(TARGETS)
    arguments, words, ledger = _spoiled(target, kit, dice)
    # What is public may be shown, whatever it holds.
    public = {word.split("=")[0] for word in words.split(", ")} - set(PRIVATE)
    spent = None if ledger is None else shoal.Ledger.open(ledger).spent
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        # Python itself shows these to nobody.
        warnings.simplefilter("ignore", DeprecationWarning)
        wrong = _call(target, kit, arguments, secret=not public)
    if wrong == "refused" and ledger is not None and shoal.Ledger.open(ledger).spent != spent:
        wrong = "a refusal that spent budget"
    elif wrong in ("", "refused"):
        wrong = f"a warning: {heard[0].category.__name__}: {heard[0].message}" if heard else ""
    return f"{target.name}({words}): {wrong}" if wrong else ""


def _spoiled(
    target: Target, kit: Kit, dice: random.Random
) -> tuple[dict[str, Any], str, str | None]:
    arguments = target.arguments(kit)
    for name, value in target.optional(kit).items():
        if dice.random() < 0.5:
            arguments[name] = value
    names = [*arguments, *(set(target.optional(kit)) - set(arguments))]
    names.sort()
    ledger = kit.ledger if target.takes_ledger and dice.random() < _LEDGER else None
    if ledger is not None:
        arguments["ledger"] = ledger
        for name in ("outcome_name", "values_name", "privacy_unit"):
            if name in names:
                arguments[name] = "public"
    words = []
    for name in dice.sample(names, min(len(names), dice.choice((1, 1, 2, 3)))):
        value = dice.choice(list(_VALUES))
        made = _VALUES[value](kit.folder)
        if name in _CALLED and callable(made):
            continue
        arguments[name] = made
        words.append(f"{name}={value}")
    return arguments, ", ".join(words), ledger


def _call(target: Target, kit: Kit, arguments: dict[str, Any], *, secret: bool) -> str:
    """Nothing if it went well, `refused`, or what went wrong."""
    signal.alarm(_SECONDS)
    try:
        try:
            touch(target.find(kit)(**arguments))
        finally:
            signal.alarm(0)
    except shoal.ShoalError as error:
        return _unclean(error, secret=secret) or "refused"
    except TooSlowError:
        return f"took longer than {_SECONDS} s"
    except Exception as error:  # noqa: BLE001
        place = traceback.extract_tb(error.__traceback__)
        own = [each for each in place if "/shoal/" in each.filename] or place[-1:]
        at = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return f"{type(error).__name__} at {at}"
    return ""


def _unclean(error: BaseException, *, secret: bool) -> str:
    text = str(error)
    if "\n" in text or len(text) > _LONGEST or not text.isprintable():
        return f"a message of {len(text)} characters that is not one short line"
    link: BaseException | None = error if secret else None
    seen = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        try:
            shown = "".join(traceback.format_exception_only(link))
        except Exception:  # noqa: BLE001
            shown = ""
        if any(word in shown for word in CANARIES):
            return f"a private value in {'the message' if link is error else 'its context'}"
        link = link.__cause__ or link.__context__
    return ""


def _again(folder: Path, seed: int, number: int) -> None:
    kit = Kit(folder)
    dice = random.Random(f"{seed} {number}")  # noqa: S311
    target = dice.choice(TARGETS)
    arguments, words, _ = _spoiled(target, kit, dice)
    sys.stdout.write(f"{target.name}({words})\n")
    sys.stdout.flush()
    with rails(folder):
        target.find(kit)(**arguments)


def _kind(line: str) -> str:
    return f"{line.split(': ', 1)[1].split('(', maxsplit=1)[0]} {line.rsplit(': ', 1)[-1]}"


if __name__ == "__main__":
    main(run, _again, _kind, 1000)
