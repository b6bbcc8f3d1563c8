"""The folder that hostile command lines run in: small sound files, hostile files, and what changed.

Every case starts from the same bytes: what a run wrote, replaced or took away is put back.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from shoal.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

State: TypeAlias = "dict[str, tuple[str, bytes]]"

ROWS = 200
# Distinctive digits and words of the private column `secret`.
CANARY = 7391.254817
CANARIES = ("7391.25", "7391254", "canary-of-fuzz")
PRIVATE = "secret"
_WORD = "canary-of-fuzz"

RECORDS = ("--user", "user", "--value", PRIVATE, "--bounds", "0", "10000")
_TRIAL = ("--outcome", PRIVATE, "--treatment", "arm", "--cluster", "place", "--unit", "row")
_ASKED = ("--treatment", "arm", "--cluster", "place")
_SPACE = ("--space", "bins:0:10000:4", "--epsilon", "4")
_MOMENT = ("--epsilon", "2", "--delta", "1e-6", "--order", "4", "--size", "900")
_MADE = (
    ("plan", "a.parquet", *RECORDS, "--cell", "place", "--epsilon", "4", "--uninformative", "keep",
     "--output", "plan.json"),
    ("unbiased", "plan", "a.csv", "--user", "user", *_MOMENT, "--interval", "0", "9000", "--method",
     "clipped_mean", "--output", "mean-plan.json"),
    ("ledger", "create", "a.ledger", "--epsilon", "100000", "--delta", "0.9", "--unit", "user"),
    ("ledger", "create", "rows.ledger", "--epsilon", "100000", "--delta", "0.9", "--unit", "row"),
    ("ledger", "create", "poor.ledger", "--epsilon", "0.001"),
    ("release", "a.parquet", "plan.json", "--ledger", "a.ledger", "--name", "old", "--manifest",
     "manifest.json"),
    ("trial", "release", "a.csv", *_TRIAL, *_SPACE, "--ledger", "rows.ledger", "--unit", "row",
     "--manifest", "trial.json", "--output", "units.csv"),
    ("trial", "ask", "a.csv", *_ASKED, *_SPACE, "--effect", "--ols", "arm", "--output",
     "asked.json"),
    ("trial", "answer", "a.csv", *_ASKED, "--outcome", PRIVATE, "--plan", "asked.json", "--ledger",
     "rows.ledger", "--privacy-unit", "row", "--name", "old", "--manifest", "answers.json"),
    ("unbiased", "release", "a.csv", "--value", PRIVATE, "--user", "user", "--plan",
     "mean-plan.json", "--ledger", "a.ledger", "--manifest", "mean.json"),
)  # fmt: skip


class Stage:
    """A folder with sound and hostile files.

    Attributes:
        folder: Where.
        state: What is in it before a run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        home = os.getcwd()  # noqa: PTH109
        os.chdir(folder)
        try:
            _sound(folder)
        finally:
            os.chdir(home)
        _hostile(folder)
        _special(folder)
        self.state = look(folder)

    def add(self, name: str, content: bytes) -> None:
        """One more file, for one case."""
        (self.folder / name).write_bytes(content)
        self.state = {**self.state, name: ("file", content)}

    def changed(self) -> str:
        """What is new, gone or other than before a run, or nothing."""
        now = look(self.folder)
        names = sorted(
            name for name in now.keys() | self.state.keys() if now.get(name) != self.state.get(name)
        )
        return ", ".join(name.encode("ascii", "backslashreplace").decode() for name in names)

    def restore(self) -> None:
        """As before the run."""
        now = look(self.folder)
        for name in now.keys() | self.state.keys():
            if now.get(name) == self.state.get(name):
                continue
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            if name in self.state:
                _put(path, *self.state[name])

    def remove(self, name: str) -> None:
        """Take away what was added for a case."""
        self.state = {known: what for known, what in self.state.items() if known != name}
        (self.folder / name).unlink(missing_ok=True)


def look(folder: Path) -> State:
    """Kind and content of everything in a folder."""
    found: State = {}
    for place, _, _ in os.walk(folder):
        for entry in os.scandir(place):
            name = os.path.relpath(entry.path, folder)
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                found[name] = ("link", os.fsencode(os.readlink(entry.path)))  # noqa: PTH115
            elif stat.S_ISDIR(mode):
                found[name] = ("folder", b"")
            elif stat.S_ISFIFO(mode):
                found[name] = ("fifo", b"")
            else:
                with open(entry.path, "rb") as stream:  # noqa: PTH123
                    found[name] = ("file", stream.read())
    return found


def _put(path: Path, kind: str, content: bytes) -> None:
    if kind == "link":
        path.symlink_to(os.fsdecode(content))
    elif kind == "folder":
        path.mkdir(exist_ok=True)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(content)


def table() -> pa.Table:
    """Records of 20 users in three places, some of them canaries."""
    rng = np.random.default_rng(5)
    users = np.arange(ROWS) % 20
    secret = np.round(rng.uniform(0, 9000, ROWS), 3)
    secret[::20] = CANARY
    columns: dict[str, Any] = {
        "user": pa.array([f"u{each}" for each in users]),
        PRIVATE: secret,
        "place": np.arange(ROWS) % 3,
        "arm": np.arange(ROWS) // 3 % 2,
        "row": np.arange(ROWS),
        "when": pa.array(np.arange(ROWS) * 3600, pa.timestamp("s", "UTC")),
        "lat": np.full(ROWS, 48.0),
        "lon": np.full(ROWS, 11.0),
    }
    return pa.table(columns)


def _sound(folder: Path) -> None:
    pq.write_table(table(), folder / "a.parquet")
    pc.write_csv(table(), folder / "a.csv")
    for arguments in _MADE:
        with contextlib.redirect_stdout(io.StringIO()):
            if main(list(arguments)) != 0:
                raise RuntimeError(" ".join(arguments))


def _hostile(folder: Path) -> None:
    """Files that are not what their names say, or hardly."""
    lines = (folder / "a.csv").read_text().splitlines()
    head, body = lines[0], lines[1:]
    private = f'"u1",{_WORD},0,0,0,"2020-01-01 00:00:00Z",48,11'
    texts = {
        "empty": "",
        "header": head + "\n",
        "headless": "\n".join(body),
        "text": "\n".join([head, *body[:50], private, *body[50:]]),
        "short": "\n".join([head, *body[:9], f"u1,{CANARY}", *body[9:]]),
        "long": "\n".join([head, *body[:9], body[9] + f",{CANARY},{_WORD}", *body[10:]]),
        "quotes": "\n".join([head, *body[:9], f'"u1,{CANARY},0', *body[9:]]),
        "double": "\n".join([head + f",{PRIVATE}", *(line + ",1" for line in body)]),
        "huge": "\n".join([head, *(line.replace("7391.254817", "9" * 400) for line in body)]),
        "infinite": "\n".join([head, *(line.replace("7391.254817", "inf") for line in body)]),
        "null": "\n".join([head, *(line.replace("7391.254817", "") for line in body)]),
        "nul": "\n".join([head, *(line.replace('"u1"', '"u\0"') for line in body)]),
        "wide": "\n".join([head + "".join(f",c{n}" for n in range(1000)), *body]),
        "semicolons": "\n".join(lines).replace(",", ";"),
        "returns": "\r".join(lines),
        "blank": "\n" * 500,
        "nameless": "\n".join([",,,,,,,", *body]),
        "field": head + "\n" + "x" * 3_000_000,
        "mixed": "\n".join([head, *(line.replace('"u1"', "1e999") for line in body)]),
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (folder / "utf16.csv").write_text("\n".join(lines), encoding="utf-16")
    (folder / "latin.csv").write_bytes("\n".join(lines).replace("u1", "ü").encode("latin-1"))
    (folder / "bom.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    _tables(folder)
    (folder / "list.json").write_text("[]")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "nan.json").write_text('{"schema": NaN}')
    (folder / "digits.json").write_text('{"schema": ' + "9" * 6000 + "}")
    (folder / "empty.json").write_bytes(b"")
    (folder / "empty.ledger").write_bytes(b"")
    (folder / "text.ledger").write_text(f"{_WORD}\n")


def _tables(folder: Path) -> None:
    sound = table()
    words = [*map(str, range(ROWS - 1)), _WORD]
    at = sound.column_names.index(PRIVATE)
    kinds = {
        "text": sound.set_column(at, PRIVATE, pa.array(words)),
        "rows0": sound.slice(0, 0),
        "nulls": sound.set_column(at, PRIVATE, pa.nulls(ROWS, pa.float64())),
        "lists": sound.set_column(at, PRIVATE, pa.array([[CANARY]] * ROWS)),
        "structs": sound.set_column(0, "user", pa.array([{"a": CANARY}] * ROWS)),
        "twice": pa.Table.from_arrays([*sound.columns, sound.column(at)],
                                      names=[*sound.column_names, PRIVATE]),
        "nameless": sound.rename_columns(["", *sound.column_names[1:]]),
        "bytes": sound.set_column(0, "user", pa.array([b"\xff"] * ROWS)),
        "less": sound.slice(7),
    }  # fmt: skip
    for name, kind in kinds.items():
        pq.write_table(kind, folder / f"{name}.parquet")
    (folder / "binary.parquet").write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1")
    (folder / "empty.parquet").write_bytes(b"")


def _special(folder: Path) -> None:
    """Pipes, folders, and links to nowhere, in a circle and to what is read."""
    for ending in ("csv", "parquet", "json", "ledger", "png"):
        os.mkfifo(folder / f"fifo.{ending}")
        (folder / f"folder.{ending}").mkdir()
        (folder / f"loop.{ending}").symlink_to(f"loop.{ending}")
        (folder / f"gone-link.{ending}").symlink_to(f"no/such/file.{ending}")
    for name in ("a.csv", "a.parquet", "plan.json", "a.ledger"):
        (folder / f"alias-{name}").symlink_to(name)
    (folder / "old.png").write_bytes(b"old")
