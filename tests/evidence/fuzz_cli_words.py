"""Sound command lines of every verb, and hostile words to spoil them with."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tests.evidence.fuzz_cli_stage import PRIVATE, RECORDS

if TYPE_CHECKING:
    import random

Group: TypeAlias = tuple[str, ...]

_OUT = (("--output", "new.csv"), ("--manifest", "new.json"), ("--json",), ("--force",))
_UNIT = (("--name", "x"), ("--again",), ("--privacy-unit", "user"), ("--confidence", "0.9"))
_TRIAL = (("--treatment", "arm"), ("--cluster", "place"))
_MOMENT = (("--epsilon", "2"), ("--delta", "1e-6"), ("--order", "4"), ("--size", "900"))
_PUBLISH = (("--publish-values",), ("--missing", "public"), ("--interval", "0", "9000"))


def _pairs(words: tuple[str, ...]) -> tuple[Group, ...]:
    """Options with their values; bounds have two."""
    found: list[Group] = []
    for word in words:
        found[-1:] = [(*found[-1], word)] if not word.startswith("--") else [*found[-1:], (word,)]
    return tuple(found)


# Verb, what it needs, and what it may have.
VERBS: tuple[tuple[Group, tuple[Group, ...], tuple[Group, ...]], ...] = (
    (
        ("plan",),
        (("a.csv",), *_pairs(RECORDS), ("--cell", "place"), ("--epsilon", "4")),
        (
            ("--output", "new.json"), ("--json",), ("--method", "uniform"),
            ("--method", "user_clipped"), ("--objective", "worst_case"), ("--method", "clip_user"),
            ("--setting", "cap=2"), ("--uninformative", "keep"),
            ("--min-users", "2"), ("--min-records", "3"), ("--missing", "public"),
            ("--tick-bits", "12"), ("--rows", "3"), ("--statistic", "variance"),
            ("--delta", "1e-6"), ("--force",), ("--cell", "hour_of_day(when)"),
            ("--cell", "timeslot(when,1h)"), ("--cell", "hexagon(lat,lon,7)"),
            ("--cell", "weekday(when,Europe/Berlin)"), ("--cell", "bins(lat,10)"),
        ),
    ),
    (
        ("compare",),
        (("a.parquet",), *_pairs(RECORDS), ("--cell", "place"), ("--repetitions", "2")),
        (("--epsilon", "2"), ("--deviation", "5"), ("--between", "0.5"), ("--json",)),
    ),
    (
        ("release",),
        (("a.parquet",), ("plan.json",), ("--ledger", "a.ledger"), ("--name", "new")),
        (*_OUT, *_UNIT[1:]),
    ),
    (("verify",), (("manifest.json",),), (("--ledger", "a.ledger"), ("--json",))),
    (("verify",), (("trial.json",),), (("--ledger", "rows.ledger"), ("--json",))),
    (("verify",), (("mean.json",),), (("--ledger", "a.ledger"), ("--json",))),
    (
        ("ledger", "create"),
        (("new.ledger",), ("--epsilon", "2")),
        (("--delta", "1e-6"), ("--unit", "user")),
    ),
    (("ledger", "show"), (("a.ledger",),), (("--json",),)),
    (("ledger", "verify"), (("a.ledger",),), (("--head", "f" * 64),)),
    (
        ("trial", "plan"),
        (("--units", "200"), ("--clusters", "4"), ("--space", "binary"), ("--epsilon", "2")),
        (
            ("--shares", "0.5,0.5"), ("--mean", "0.3"), ("--sd", "0.2"), ("--between", "0.1"),
            ("--effect", "0.1"), ("--power", "0.9"), ("--against-units", "400"), ("--json",),
            ("--against-clusters", "8"), ("--delta", "0.001"), ("--epsilon", "1"),
        ),
    ),
    (("trial", "plan"), (("a.csv",), *_TRIAL), (("--control", "1"), ("--single-arm", "drop"))),
    (
        ("trial", "release"),
        (
            ("a.csv",), ("--outcome", PRIVATE), *_TRIAL, ("--space", "bins:0:10000:3"),
            ("--epsilon", "3"), ("--ledger", "rows.ledger"), ("--unit", "row"),
        ),
        (
            *_OUT, *_UNIT, ("--mechanism", "noisy_histogram"),
            ("--mechanism", "noisy_horvitz_thompson"),
            ("--levels", "2"), ("--floor", "0.1"), ("--histogram-scale", "3"), ("--control", "1"),
            ("--rounding", "nearest"), ("--missing", "public"), ("--single-arm", "drop"),
            ("--clustering-epsilon", "1"), ("--delta", "0.001"),
        ),
    ),
    (
        ("trial", "estimate"),
        (("trial.json",),),
        (("--output", "new.csv"), ("--clusters",), ("--json",), ("--confidence", "0.9")),
    ),
    (
        ("trial", "ask"),
        (("a.csv",), *_TRIAL, ("--epsilon", "3"), ("--effect",)),
        (
            ("--precision",), ("--means",), ("--ols", "arm"), ("--effect-by", "place"),
            ("--space", "bins:0:10000"), ("--spread", "0.2"), ("--control", "1"), ("--json",),
            ("--output", "new.json"),
        ),
    ),
    (
        ("trial", "answer"),
        (
            ("a.csv",), ("--plan", "asked.json"), ("--outcome", PRIVATE), *_TRIAL,
            ("--ledger", "rows.ledger"), ("--privacy-unit", "row"),
        ),
        (*_OUT, ("--name", "new"), ("--again",), ("--confidence", "0.9"), ("--json",)),
    ),
    (
        ("trial", "regress"),
        (("answers.json",),),
        (("--ols", "arm"), ("--confidence", "0.9"), ("--json",)),
    ),
    (
        ("unbiased", "plan"),
        (("--users", "2000"), *_MOMENT),
        (
            *_PUBLISH, ("--bias", "9"), ("--releases", "5"), ("--weights", "counts"), ("--json",),
            ("--cap", "3"), ("--method", "symmetric_mean"), ("--output", "new.json"),
        ),
    ),
    (
        ("unbiased", "plan"),
        (("a.csv",), ("--user", "user"), *_MOMENT),
        (("--value", PRIVATE), *_PUBLISH, ("--output", "new.json")),
    ),
    (
        ("unbiased", "release"),
        (
            ("a.csv",), ("--value", PRIVATE), ("--user", "user"), ("--ledger", "a.ledger"),
            ("--plan", "mean-plan.json"), ("--name", "new"),
        ),
        (*_OUT[1:], *_UNIT),
    ),
    (
        ("unbiased", "release"),
        (
            ("a.parquet",), ("--value", PRIVATE), ("--user", "user"), ("--ledger", "a.ledger"),
            ("--method", "sampled_mean"), ("--delta", "0.4"), ("--publish-values",),
            ("--size", "9"),
        ),
        (*_OUT[1:], *_UNIT, ("--method", "clipped_mean"), *_MOMENT, *_PUBLISH, ("--cap", "2")),
    ),
    (
        ("unbiased", "bound"),
        (("--users", "900"), *_MOMENT),
        (("--bias", "0.1"), ("--interval", "0", "5"), ("--json",)),
    ),
    (("study", "list"), (), ()),
    (("bench", "noise"), (("--numbers", "100"),), ()),
)  # fmt: skip

# What takes long or leaves the folder: never run, always with an option that nothing knows.
_LONG: tuple[Group, ...] = (
    ("demo",), ("study", "run"), ("bench", "aggregate"), ("bench", "error"),
    ("bench", "sparse"), ("bench", "plan"), ("bench", "trials"), ("bench", "privatize"),
    ("bench", "unbiased"), ("bench", "ledger"), ("fly",), (), ("ledger",), ("trial",),
)  # fmt: skip
_NEVER = ("--no-such-option",) * 3

_NUMBERS = (
    "nan", "inf", "-inf", "NaN", "1e308", "-1e308", "5e-324", "1e-400", "1e400", "0", "-0.0", "-1",
    "1", "2", "0.5", "1e16", "1e999999999", "1/3", "1/0", "0x10", "1_0", "٣", "\uff11", "9" * 30,
    "9" * 5000, "1." + "3" * 3000, "1,5", " 1", "1\n", "1e-9", "true", "None",
)  # fmt: skip
_TEXTS = (
    "", " ", "\0", "a\0b", "\ud800", "\udcff", "x" * 5000, "x" * 300_000, "a\nb", "\x1b[31m",
    "\u202eabc", "é", "--", "-", "--x", "-h", "--help", "=", "a=b=c", "%s{0}", "'", '"; DROP',
    PRIVATE, PRIVATE.upper(), "user", "place", "arm", "row", "when", "timeslot(when,0h)",
    "hexagon(lat,lon,99)", "hour_of_day()", "month(when,../..)", "bins(lat,1e9)",
    "timeslot(" * 500, "share_above(1e999)",
    "share_above(5)", "cap=minimax", "cap=" + "9" * 5000, "objective=worst_case", "selected",
    "optimal", "balanced", "drop", "refuse", "public", "bins:0:inf:4", "bins:0:1:999999999999",
    "levels:0,1e200", "counts:0:99999999999", "ordinal:,", ":",
)  # fmt: skip
_PATHS = (
    "missing.csv", "missing.json", "missing.ledger", ".", "", "no/such.csv", "no/such.json",
    "a.csv", "a.parquet", "./a.csv", "A.CSV", "alias-a.csv", "alias-a.parquet", "a.csv/x.csv",
    "plan.json", "alias-plan.json", "mean-plan.json", "manifest.json", "trial.json", "mean.json",
    "a.ledger", "alias-a.ledger", "rows.ledger", "poor.ledger", "a.ledger-journal", "a.ledger-wal",
    "a.ledger.csv", "a*.csv", "a?.parquet", "[a].csv", "{a,b}.csv", "~", "~nobody/x.csv", "-.csv",
    "units.csv", "old.png", "new.png", "new.x", "new.csv", "new.json", "new.parquet", "a\0.csv",
    "\ud800.json", "\udcff.csv", "\udcff.json", "x" * 300 + ".csv", "x" * 5000 + ".json",
    "x\ny.csv", "file:a.csv", "http://localhost:9/a.csv", "s3://a/b.parquet", "new.json ",
    *(f"{kind}.{ending}" for kind in ("fifo", "folder", "loop", "gone-link")
      for ending in ("csv", "parquet", "json", "ledger", "png")),
    *(f"{name}.csv" for name in (
        "empty", "header", "headless", "text", "short", "long", "quotes", "double", "huge", "wide",
        "infinite", "null", "nul", "semicolons", "returns", "blank", "nameless", "binary", "utf16",
        "latin", "bom", "field", "mixed")),
    *(f"{name}.parquet" for name in (
        "text", "rows0", "nulls", "lists", "structs", "twice", "nameless", "bytes", "less",
        "binary", "empty")),
    *(f"{name}.json" for name in ("list", "deep", "nan", "digits", "empty")),
    "empty.ledger", "text.ledger",
)  # fmt: skip
_ENDINGS = (".csv", ".parquet", ".json", ".ledger", ".png")
# How many times something is drawn or tried: a large one is slow, not wrong.
_REPEATED = ("--repetitions",)
SPOILED = "spoiled"


def arguments(dice: random.Random) -> list[str]:
    """One command line with one to three things wrong, or none that is known."""
    if dice.random() < 0.07:
        groups = [("--x", dice.choice(_NUMBERS)), (dice.choice(_TEXTS),)]
        return [*dice.choice(_LONG), *(word for group in groups for word in group), *_NEVER]
    verb, needed, allowed = dice.choice(VERBS)
    groups = [*needed, *(group for group in allowed if dice.random() < 0.15)]
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        groups = _spoil(groups, dice)
    return [*verb, *(word for group in groups for word in group)]


def _spoil(groups: list[Group], dice: random.Random) -> list[Group]:
    """One thing wrong: most often a value."""
    kind = dice.random()
    if not groups or kind < 0.06:
        _, needed, allowed = dice.choice(VERBS)
        return [*groups, dice.choice([*needed, *allowed, ("--nope",)])]
    at = dice.randrange(len(groups))
    if kind < 0.12:
        return groups[:at] + groups[at + 1 :]
    if kind < 0.16:
        return [*groups, groups[at]]
    if kind < 0.20:
        return dice.sample(groups, len(groups))
    if kind < 0.24:
        return [*groups[:at], (dice.choice(_TEXTS),), *groups[at:]]
    group = list(groups[at]) or [""]
    if kind < 0.27:
        del group[dice.randrange(len(group))]
    else:
        which = dice.randrange(len(group)) if dice.random() < 0.05 else len(group) - 1
        group[which] = _value(group, which, dice)
    changed = tuple(group)
    # Once more with another value, or instead.
    return [*groups, changed] if kind > 0.95 else [*groups[:at], changed, *groups[at + 1 :]]


def _value(group: list[str], which: int, dice: random.Random) -> str:
    old = group[which]
    if group[0] in _REPEATED:
        return dice.choice([each for each in _NUMBERS if each not in ("1e16", "9" * 30)])
    path = old.endswith(_ENDINGS)
    kind = dice.random()
    if path and kind < 0.3:
        # Made for this case alone: a file like that one with wrong bytes.
        return f"{SPOILED}{old[old.rindex('.') :]}"
    if path and kind < 0.9:
        alike = [each for each in _PATHS if each.endswith(old[old.rindex(".") :])]
        return dice.choice(alike if dice.random() < 0.6 else list(_PATHS))
    if kind < 0.1:
        return dice.choice(_PATHS)
    number = old.replace(".", "").replace("e-", "").isdecimal()
    return dice.choice(_NUMBERS if number == (kind < 0.8) else _TEXTS)


def spoiled(content: bytes, dice: random.Random) -> bytes:
    """The bytes of a file, cut, turned, filled or joined."""
    found = bytearray(content)
    kind = dice.randrange(6)
    at = dice.randrange(len(found) + 1)
    if kind == 0:
        return bytes(found[:at])
    if kind == 1 and found:
        for _ in range(dice.choice((1, 1, 3, 30))):
            found[dice.randrange(len(found))] ^= 1 << dice.randrange(8)
    elif kind == 2:
        found[at:at] = dice.choice((b"\0", b"\xff\xfe", b'"', b",,,", b"\n\n", b"{", b"9" * 5000))
    elif kind == 3:
        del found[at : at + dice.choice((1, 16, 400))]
    elif kind == 4:
        found += found[at:]
    else:
        found[at : at + 64] = bytes(64)
    return bytes(found)
