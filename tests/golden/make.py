"""Renew results of some kinds on purpose: `python -m tests.golden.make kind ...`.

Requests and drawn numbers stay as they are. Put the figures that this prints into the commit's
message.
"""

import gzip
import json
import sys

from tests.golden.adapter import answer
from tests.golden.compare import differences, place, read, shown


def main(kinds: list[str]) -> None:
    """The same requests with today's results; prints what differs."""
    for kind in kinds:
        lines = []
        for at, pair in enumerate(read(kind)):
            request, before = pair["request"], pair["result"]
            after = answer(kind, request)
            for each in differences(request, before, after):
                sys.stdout.write(f"{kind} {at}: {shown(each)}\n")
            made = {"request": request, "result": after}
            lines.append(json.dumps(made, separators=(",", ":"), allow_nan=False))
        text = "[" + ",\n".join(lines) + "]\n"
        place(kind).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
