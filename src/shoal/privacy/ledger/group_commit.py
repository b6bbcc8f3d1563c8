"""Group commit: who waits for its turn hands its draft to the process that is next in the queue.

That one, the leader, listens while it waits for its turn, at a socket whose name is in the kernel
alone (Linux). In its transaction, after its own charge, it enters the drafts of its followers under
the same rules, and answers once they are on the disk. A follower believes no answer: it reads its
entry in the ledger. One that has no answer, or another one, charges by itself, as all do where
there are no such sockets; so nothing is lost when anything here fails.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakSet

from shoal.privacy.ledger.entry import SCHEMA_VERSION
from shoal.privacy.ledger.mask import masked, receipt, unmasked
from shoal.privacy.ledger.message import FORMAT, decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shoal.privacy.ledger.entry import Draft, Founding
    from shoal.privacy.ledger.place import FileOf

_NO = b"no"
_LONGEST_ANSWER = 100
_MOST_DRAFTS = 128
# Of one draft, which the kernel keeps whole; and of all that one transaction takes in.
_LONGEST, _MOST_BYTES = 2**16, 2**20
_TRIES = 3
# Seconds to wait for an answer, to look through drafts, and to let followers read.
_PATIENCE, _LONGEST_LOOK, _LONGEST_READ = 2.0, 0.1, 0.1
_CREDENTIALS = struct.Struct("iII")
# Who has no number in this process's user namespace is shown as this one.
_NOBODY = 65534
_OPEN = WeakSet[socket.socket]()


class Request(NamedTuple):
    """A draft that a follower has handed over.

    Attributes:
        follower: Where it waits for the answer.
        draft: Checked as `Ledger.record` checks its arguments.
        receipt: The answer, once it is recorded.
    """

    follower: socket.socket
    draft: Draft
    receipt: bytes


class Group:
    """Processes that charge one ledger at the same time, as one of them sees it.

    Who uses it leaves in a `finally`.

    Args:
        file: The ledger's file.
        founding: Its creation record, if it is known.
        draft: What this process records; without it nothing is shared.

    Attributes:
        told: Whether a leader says that the draft is recorded.
    """

    def __init__(self, file: FileOf, founding: Founding | None, draft: Draft | None) -> None:
        self.told = False
        self._name = b""
        if draft is not None and founding is not None:
            self._name, self._draft = _name(file), draft
            self._ledger, self._key = founding.hash, founding.identity
        self._listener: socket.socket | None = None
        self._leader: socket.socket | None = None
        self._followers: list[socket.socket] = []
        self._receipts = dict[socket.socket, bytes]()

    def join(self) -> bool:
        """Follow the process that is next in the queue; if there is none, become it.

        Returns:
            Whether the draft is said to be recorded. If not, this process waits for its turn.
        """
        for _ in range(_TRIES if self._name else 0):
            if self._listen() or len(self._draft.document) > _LONGEST:
                return False
            message = masked(self._key, encoded(self._ledger, self._draft))
            answer = self._ask(message)
            self.told = answer == receipt(self._key, message)
            if self.told:
                return True
            # Whose draft was not taken yet takes it back.
            self._stop_asking()
            if answer:
                return False
        return False

    def requests(self) -> Iterable[Request]:
        """The drafts that have come; later ones go to the next leader. Nothing is waited for."""
        if self._listener is None:
            return
        until, size = time.monotonic() + _LONGEST_LOOK, 0
        while size < _MOST_BYTES and len(self._followers) < _MOST_DRAFTS:
            came = _tried(self._listener.accept)
            if not came:
                break  # nobody is left
            follower = came[0][0]
            self._followers.append(follower)
            _OPEN.add(follower)
            message = _received(follower)
            size += len(message)
            draft = decoded(self._ledger, unmasked(self._key, message) or b"")
            if draft is not None:
                yield Request(follower, draft, receipt(self._key, message))
            if time.monotonic() > until:
                break
        # One handle is free again, which SQLite needs to make the commit durable.
        self._stop_listening()

    def enter(self, request: Request) -> None:
        """Note that a draft will be in the ledger."""
        self._receipts[request.follower] = request.receipt

    @property
    def is_shared(self) -> bool:
        """Whether drafts of others have come into this transaction."""
        return bool(self._followers)

    def tell(self) -> None:
        """Answer, and let followers read before another process has its turn.

        They would be in the way of its commit, and it in theirs.
        """
        reading, look = set[int](), select.poll() if self._followers else None
        for follower in self._followers:
            answer = self._receipts.get(follower)
            if _tried(follower.send, answer or _NO) and answer and look is not None:
                look.register(follower, 0)
                reading.add(follower.fileno())
        until = time.monotonic() + _LONGEST_READ
        while look is not None and reading and (left := until - time.monotonic()) > 0:
            for gone, _ in look.poll(1000 * left):
                look.unregister(gone)
                reading.discard(gone)

    def leave(self) -> None:
        """Close all: followers without an answer charge by themselves. Again it does nothing."""
        self._stop_listening()
        self._stop_asking()
        for follower in self._followers:
            follower.close()

    def _listen(self) -> bool:
        """Become the leader; there is one at a time, as a name is taken once."""
        self._listener = _socket()
        if self._listener is None:
            return False
        bound = _tried(self._listener.bind, self._name)
        if not bound or not _tried(self._listener.listen, _MOST_DRAFTS):
            self._stop_listening()
        return self._listener is not None

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _stop_asking(self) -> None:
        if self._leader is not None:
            self._leader.close()
            self._leader = None

    def _ask(self, message: bytes) -> bytes:
        """Hand the draft to the leader; its answer, or nothing if it has gone."""
        self._leader = _socket()
        if self._leader is None or not _tried(self._leader.connect, self._name):
            return b""
        if not _is_ours(self._leader):
            return _NO
        if not _tried(self._leader.send, message):
            return b""
        look = select.poll()
        look.register(self._leader, select.POLLIN)
        if not look.poll(1000 * _PATIENCE):
            return _NO
        return b"".join(_tried(self._leader.recv, _LONGEST_ANSWER))


def _name(file: FileOf) -> bytes:
    """What the leader of a ledger's processes is called; empty where there are no such names."""
    if not hasattr(socket, "SO_PEERCRED") or os.geteuid() == _NOBODY:
        return b""
    facts = FORMAT, SCHEMA_VERSION, os.geteuid(), file.device, file.number
    return b"\0shoal-ledger-%d-%d-%d-%x-%x" % facts


def _tried(call: Callable[..., Any], *given: object) -> tuple[Any, ...]:
    """What one call of a socket returns, alone in a tuple; an empty one if it fails.

    Whatever it raises: tests, proxies and auditors guard sockets with errors of their own. What a
    signal's handler raises is the caller's, and no socket here waits until it is too late.
    """
    try:
        return (call(*given),)
    except TimeoutError:
        raise
    except Exception:
        return ()


def _socket() -> socket.socket | None:
    """A socket that keeps messages apart, so that each comes whole or not at all, if there are."""
    kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK
    for made in _tried(socket.socket, socket.AF_UNIX, kind):
        _OPEN.add(made)
        return cast("socket.socket", made)
    return None


def _is_ours(peer: socket.socket) -> bool:
    """Whether a process of the same user is at the other end."""
    asked = socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    found = _tried(peer.getsockopt, *asked)
    return bool(found and _CREDENTIALS.unpack(found[0])[1] == os.geteuid())


def _received(follower: socket.socket) -> bytes:
    """The message of a process of the same user that still waits; else nothing."""
    if not _tried(follower.setblocking, False) or not _is_ours(follower):
        return b""
    message = b"".join(_tried(follower.recv, _LONGEST + 1))
    look = select.poll()
    look.register(follower, select.POLLIN)
    # Who has gone, or says more, does not wait.
    return b"" if len(message) > _LONGEST or look.poll(0) else message


def _close_all() -> None:
    """A child would keep the name of its parent, and followers waiting."""
    for one in list(_OPEN):
        one.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
