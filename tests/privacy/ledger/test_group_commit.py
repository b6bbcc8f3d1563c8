"""One commit for many charges: a peer may say, send or do what it likes, and harms nobody."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from contextlib import closing, contextmanager
from decimal import Inexact
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shoal.documents.fork_gate import GATE
from shoal.errors import BudgetError, InputError, LedgerError, ShoalError
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import group_commit, mask, recording
from shoal.privacy.ledger.entry import Draft, digest_of
from shoal.privacy.ledger.hash_chain import Chain
from shoal.privacy.ledger.ledger import Ledger
from shoal.privacy.ledger.message import encoded
from shoal.privacy.ledger.place import damaged, look
from shoal.privacy.ledger.queue import Turn
from shoal.privacy.privacy_unit import PrivacyUnit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shoal.privacy.ledger.entry import Entry

pytestmark = [
    pytest.mark.audit,
    pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="no sockets without a file"),
    pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="nobody sees who listens"),
    pytest.mark.full,
]

ROOT = Path(__file__).parents[3]
PATIENCE = 30.0


class Asker:
    """A charge in a thread: what it returned or raised."""

    def __init__(self, book: Ledger, question: str, **more: Any) -> None:
        self.got: object = None
        asked: dict[str, Any] = {
            "unit": "person",
            "epsilon": "1/10",
            "document": b"of " + question.encode(),
        }
        asked |= more
        self._book, self._question, self._asked = book, question, asked
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.got = self._book.record(self._question, **self._asked).document
        except (ShoalError, TimeoutError) as error:
            self.got = error

    def end(self) -> object:
        """Wait for it."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.got


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger of one person's losses; nothing is left beside it, nor in the kernel."""
    made = Ledger.create(tmp_path / "a.ledger", epsilon=1, unit="person")
    yield made
    made.verify()
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger"]
    assert not _named(made)
    assert not GATE._is_owned()


def _named(book: Ledger) -> int:
    """How many sockets have the name of the ledger's group."""
    name = group_commit._name(look(book.path))[1:].decode()
    lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    return sum(line.endswith(f"@{name}") for line in lines)


def _await(what: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until
        time.sleep(0.002)


@contextmanager
def _peer(book: Ledger) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(PATIENCE)
        peer.connect(group_commit._name(look(book.path)))
        yield peer


@contextmanager
def _liar(book: Ledger) -> Iterator[socket.socket]:
    """Somebody who has the leader's name and keeps the turn: a charge hands its draft over."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.settimeout(PATIENCE)
        listener.bind(group_commit._name(look(book.path)))
        listener.listen()
        yield listener


def _draft(book: Ledger, question: str, epsilon: str = "1/10", unit: str = "person") -> bytes:
    document = b"of " + question.encode()
    facts = PrivacyUnit(unit), Budget.of(epsilon), document, digest_of(document)
    return _masked(book, encoded(book._founding.hash, Draft(question, "", "", *facts)))


def _masked(book: Ledger, message: bytes) -> bytes:
    return mask.masked(book._founding.identity, message)


def _plain(book: Ledger, message: bytes) -> bytes:
    return mask.unmasked(book._founding.identity, message) or b""


def _receipt(book: Ledger, message: bytes) -> bytes:
    return mask.receipt(book._founding.identity, message)


def _answers(book: Ledger, *messages: bytes) -> tuple[object, list[bytes]]:
    """What a leader delivers to its caller and answers to those messages."""
    with Turn(book.path, PATIENCE):
        leader = Asker(book, "own")
        _await(lambda: _named(book))
        peers = [_peer(book) for _ in messages]
        opened = [peer.__enter__() for peer in peers]
        for peer, message in zip(opened, messages, strict=True):
            if message:
                peer.send(message)
    answers = []
    for peer, closing_peer, message in zip(opened, peers, messages, strict=True):
        try:
            answer = peer.recv(100)
            answers.append(b"done" if answer == _receipt(book, message) else answer)
        except ConnectionError:
            answers.append(b"")
        closing_peer.__exit__(None, None, None)
    return leader.end(), answers


def _questions(book: Ledger) -> list[str]:
    return [entry.question for entry in book.entries()]


def drive(*job: object) -> Any:
    """Do a job of the driver in a process of its own, and return what it saw."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning"]
    command += ["-m", "tests.privacy.ledger.group_driver", *map(str, job)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_commit_holds_the_charges_of_those_who_wait(book: Ledger) -> None:
    """Each entry has its own number, link and sum; asked again, it stands."""
    before = Path(book.path).read_bytes()
    messages = [_draft(book, f"{number}") for number in range(4)]
    delivered, answers = _answers(book, *messages, messages[0])
    assert (delivered, answers) == (b"of own", [b"done"] * 5)
    assert _questions(book) == ["own", "0", "1", "2", "3"]
    assert [entry.number for entry in book.entries()] == [1, 2, 3, 4, 5]
    assert book.spent.epsilon == 1 / 2
    with closing(sqlite3.connect(book.path)) as connection:
        [[mark]] = connection.execute("SELECT mark FROM head").fetchall()
    assert mark.endswith(":" + "1".zfill(20)), "one transaction, which a journal takes back whole"
    assert before != Path(book.path).read_bytes()


def test_no_capacity_is_passed_by_charges_of_others(book: Ledger) -> None:
    """What does not fit is not entered; what comes after and fits, is."""
    epsilons = ["1/2", "1/2", "2/5", "1/1000", "1000000", "0"]
    messages = [_draft(book, f"{at}", epsilon) for at, epsilon in enumerate(epsilons)]
    delivered, answers = _answers(book, *messages)
    assert delivered == b"of own"
    assert answers == [b"done", b"no", b"done", b"no", b"no", b"done"]
    assert book.spent == book.budget


def test_bad_drafts_of_others_harm_nobody(book: Ledger) -> None:
    """Garbage, lies about lengths and digests, another ledger or unit, nothing at all."""
    other = Ledger.create(book.path.with_name("b.ledger"), epsilon=1)
    good = _draft(book, "good")
    plain = _plain(book, good)
    bad = [
        b"garbage",
        b"\xff" * 2**16,
        b"\0\0\xff\xff" + b"[" * 60000,
        plain,
        good[:-1] + bytes([good[-1] ^ 1]),
        bytes([good[0] ^ 1]) + good[1:],
        _masked(book, plain.replace(b"of good", b"of food")),
        _masked(book, plain.replace(b'"1/10"', b'"-1/10"')),
        _masked(book, plain.replace(b'"1/10"', b'"nan"')),
        _draft(other, "of another ledger"),
        _masked(book, _plain(other, _draft(other, "of another ledger"))),
        _draft(book, "of rows", unit="each row"),
        good + bytes(2**17),
        b"",
    ]
    other.path.unlink()
    delivered, answers = _answers(book, *bad, good)
    assert delivered == b"of own"
    assert answers == [b"no"] * len(bad) + [b"done"]
    assert _questions(book) == ["own", "good"]


def test_who_has_gone_is_not_charged(book: Ledger) -> None:
    """An interrupt takes a draft back that no leader has looked at."""
    with Turn(book.path, PATIENCE):
        leader = Asker(book, "own")
        _await(lambda: _named(book))
        with _peer(book) as peer:
            peer.send(_draft(book, "gone"))
    assert leader.end() == b"of own"
    assert _questions(book) == ["own"]


def test_who_keeps_its_answer_open_delays_others_for_a_moment(book: Ledger) -> None:
    """A leader lets followers read before the next turn, and no longer than a moment."""
    began = time.monotonic()
    with Turn(book.path, PATIENCE):
        leader = Asker(book, "own")
        _await(lambda: _named(book))
        opened = _peer(book)
        peer = opened.__enter__()
        peer.send(_draft(book, "slow"))
    assert leader.end() == b"of own"
    assert time.monotonic() - began < PATIENCE / 3
    assert peer.recv(100) == _receipt(book, _draft(book, "slow"))
    opened.__exit__(None, None, None)


@pytest.mark.parametrize("answer", [b"receipt", b"done", b"no", b"", b"garbage" * 99, None])
def test_a_leader_that_lies_is_not_believed(
    answer: bytes | None, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it says, or if it says nothing, a charge is made and delivered once."""
    monkeypatch.setattr(group_commit, "_PATIENCE", 0.2)
    with Turn(book.path, PATIENCE), _liar(book) as listener:
        asker = Asker(book, "mine")
        peer, _ = listener.accept()
        with peer:
            assert peer.recv(2**17) == _draft(book, "mine")
            if answer:
                said = _receipt(book, _draft(book, "mine")) if answer == b"receipt" else answer
                peer.send(said)
            if answer is None:
                peer.settimeout(PATIENCE)
                assert peer.recv(1) == b"", "the draft is taken back"
    assert asker.end() == b"of mine"
    assert _questions(book) == ["mine"]


def test_what_another_recorded_first_is_delivered(book: Ledger) -> None:
    """Who is told reads the ledger, and has what stands there."""
    with _liar(book) as listener:
        with Turn(book.path, PATIENCE):
            asker = Asker(book, "mine", document=b"my own draw")
            peer, _ = listener.accept()
        with peer:
            asked = {"unit": "person", "epsilon": "1/10", "document": b"another's"}
            code = "import sys; from shoal.privacy.ledger.ledger import Ledger\n"
            code += f"Ledger.open(sys.argv[1]).record('mine', **{asked!r})"
            subprocess.run([sys.executable, "-c", code, str(book.path)], check=True)
            peer.send(_receipt(book, peer.recv(2**17)))
            assert asker.end() == b"another's"
    assert _questions(book) == ["mine"]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"epsilon": 2}, BudgetError),
        ({"unit": "each row"}, InputError),
        ({"delta": "0.1"}, BudgetError),
    ],
)
def test_who_is_refused_hears_it_from_its_own_turn(
    more: dict[str, Any], error: type[ShoalError], book: Ledger
) -> None:
    """The same errors as alone, whatever a leader says of the draft."""
    book.record("first", unit="person", epsilon="1/10", document=b"x")
    alone = Asker(book, "alone", **more).end()
    for done in (False, True):
        with Turn(book.path, PATIENCE), _liar(book) as listener:
            asker = Asker(book, "refused", **more)
            peer, _ = listener.accept()
            with peer:
                message = peer.recv(2**17)
                peer.send(_receipt(book, message) if done else b"no")
        got = asker.end()
        assert isinstance(got, error)
        assert str(got) == str(alone)
    assert _questions(book) == ["first"]


def test_no_document_lies_on_a_disk_before_it_is_charged(book: Ledger) -> None:
    """While it is handed over it is in the memory of the kernel."""
    with Turn(book.path, PATIENCE), _liar(book) as listener:
        asker = Asker(book, "mine", document=b"PRIVATE" * 99)
        peer, _ = listener.accept()
        with peer:
            message = peer.recv(2**17)
            assert b"PRIVATE" not in message
            assert b"PRIVATE" in _plain(book, message)
            assert [path.name for path in book.path.parent.iterdir()] == ["a.ledger"]
            assert b"PRIVATE" not in book.path.read_bytes()
    assert asker.end() == b"PRIVATE" * 99


def test_who_cannot_read_the_ledger_learns_and_says_nothing(book: Ledger) -> None:
    """Who listens at the name of its group, jailed, has noise, and is not believed."""
    with Turn(book.path, PATIENCE), _liar(book) as listener:
        asker = Asker(book, "mine", document=b"PRIVATE" * 99, name="May", kind="cells")
        peer, _ = listener.accept()
        with peer:
            message = peer.recv(2**17)
            for secret in (b"PRIVATE", b"mine", b"May", b"cells", b"person", b"1/10"):
                assert secret not in message
            assert len(zlib.compress(message)) >= len(message)
            peer.send(mask.receipt("0a1b2c3d-0000-4000-8000-123456789abc", message))
    assert asker.end() == b"PRIVATE" * 99
    assert mask.unmasked("0a1b2c3d-0000-4000-8000-123456789abc", message) is None
    assert mask.masked(book._founding.identity, _plain(book, message)) == message


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_processes_of_other_users_are_left_out(
    role: str, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says whose process is at the other end; it gets and gives no draft."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other, monkeypatch.context() as patch:
        assert group_commit._is_ours(one)
        patch.setattr(os, "geteuid", lambda: 12345)
        assert not group_commit._is_ours(one)
    monkeypatch.setattr(group_commit, "_is_ours", lambda _: False)
    if role == "leader":
        delivered, [answer] = _answers(book, _draft(book, "stranger"))
        assert delivered == b"of own"
        assert answer != b"done"
        assert _questions(book) == ["own"]
        return
    with Turn(book.path, PATIENCE), _liar(book) as listener:
        asker = Asker(book, "mine")
        peer, _ = listener.accept()
        with peer:
            assert peer.recv(2**17) == b""
    assert asker.end() == b"of mine"


def test_long_documents_are_charged_by_themselves(book: Ledger) -> None:
    """They are not handed over."""
    with Turn(book.path, PATIENCE), _liar(book) as listener:
        asker = Asker(book, "long", document=bytes(2**16 + 1))
        listener.settimeout(0.5)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert asker.end() == bytes(2**16 + 1)


@pytest.mark.parametrize(
    "error", [OSError(1, "not permitted"), RuntimeError("A test tried to use socket.socket.")]
)
@pytest.mark.parametrize(
    "failing", ["__new__", "__init__", "bind", "listen", "accept", "connect", "getsockopt", "send"]
)
def test_without_such_sockets_each_charges_by_itself(
    failing: str, error: Exception, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As leader and as follower; also where tests, proxies or auditors guard sockets."""

    def refuse(*_: object) -> None:
        raise error

    class Broken(socket.socket):
        pass

    setattr(Broken, failing, refuse)
    with Turn(book.path, PATIENCE), monkeypatch.context() as patch:
        patch.setattr(socket, "socket", Broken)
        leader = Asker(book, "a")
        time.sleep(0.1)
    assert leader.end() == b"of a"
    with Turn(book.path, PATIENCE), _liar(book), monkeypatch.context() as patch:
        patch.setattr(socket, "socket", Broken)
        follower = Asker(book, "b")
        time.sleep(0.1)
    assert follower.end() == b"of b"


@pytest.mark.parametrize("guarded", ["setblocking", "getsockopt", "recv", "send"])
def test_guards_that_come_later_break_no_leader(
    guarded: str, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its follower's socket in hand, it makes its own charge all the same."""

    def refuse(*_: object) -> None:
        raise RuntimeError("guarded")

    with Turn(book.path, PATIENCE):
        leader = Asker(book, "own")
        _await(lambda: _named(book))
        opened = _peer(book)
        peer = opened.__enter__()
        peer.send(_draft(book, "other"))
        monkeypatch.setattr(socket.socket, guarded, refuse, raising=False)
    assert leader.end() == b"of own"
    monkeypatch.undo()
    opened.__exit__(None, None, None)
    assert _questions(book) == (["own", "other"] if guarded == "send" else ["own"])


def test_what_a_handler_raises_among_drafts_of_others_is_the_callers(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time limit is no socket's failure, and ends the charge."""

    def late(*_: object) -> None:
        raise TimeoutError("mine")

    for module, name in ((group_commit, "decoded"), (socket.socket, "accept")):
        monkeypatch.setattr(module, name, late)
        delivered, _ = _answers(book, _draft(book, "other"))
        monkeypatch.undo()
        assert str(delivered) == "mine"
    assert _questions(book) == []


def test_a_ledger_that_was_replaced_delivers_nothing_to_anybody(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same error as alone, and no charge of an older copy instead."""
    older, gone = book.path.read_bytes(), book.path.with_name("gone")

    def replace(point: str) -> None:
        if point == "before commit" and not gone.exists():
            book.path.rename(gone)
            book.path.write_bytes(older)

    monkeypatch.setattr(recording, "_at", replace)
    delivered, [answer] = _answers(book, _draft(book, "other"))
    assert isinstance(delivered, LedgerError)
    assert "was replaced while it was used: nothing is delivered" in str(delivered)
    assert answer == b""
    assert _questions(book) == []
    gone.unlink()


def test_where_the_kernel_has_no_such_names_nothing_is_asked(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on other systems than Linux, and for users that namespaces hide."""
    file = look(book.path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 65534)
        assert group_commit._name(file) == b""
    with monkeypatch.context() as patch:
        patch.delattr(socket, "SO_PEERCRED")
        assert group_commit._name(file) == b""
        with Turn(book.path, PATIENCE):
            asker = Asker(book, "a")
            time.sleep(0.1)
        assert asker.end() == b"of a"


@pytest.mark.parametrize("trouble", ["damage", "SQLite", "decimals"])
def test_trouble_with_a_draft_of_another_is_not_ones_own(
    trouble: str, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole transaction is taken back, and the own charge made alone."""
    append, find = Chain.append, Chain.find

    def no_append(chain: Chain, entry: Entry) -> None:
        append(chain, entry)
        if entry.question == "bad":
            raise sqlite3.OperationalError("database or disk is full")

    def no_find(chain: Chain, question: str, name: str) -> Entry | None:
        if question == "bad":
            raise Inexact if trouble == "decimals" else damaged(book.path, "a stray index")
        return find(chain, question, name)

    if trouble == "SQLite":
        monkeypatch.setattr(Chain, "append", no_append)
    else:
        monkeypatch.setattr(Chain, "find", no_find)
    delivered, answers = _answers(book, _draft(book, "good"), _draft(book, "bad"))
    assert (delivered, answers) == (b"of own", [b"", b""])
    assert _questions(book) == ["own"]


@pytest.mark.parametrize("role", ["leader", "follower", "told"])
def test_an_interrupt_leaves_no_socket_behind(
    role: str, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the wait for the turn, for an answer, and for followers that read."""

    def late(*_: object) -> None:
        raise TimeoutError("mine")

    asked: dict[str, Any] = {"unit": "person", "epsilon": "1/10", "document": b"x"}
    before = signal.signal(signal.SIGALRM, late)
    monkeypatch.setattr(group_commit, "_LONGEST_READ", PATIENCE)
    monkeypatch.setattr(group_commit, "_PATIENCE", PATIENCE)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            turn = Turn(book.path, PATIENCE)
            turn.__enter__()
            if role == "follower":
                peer.bind(group_commit._name(look(book.path)))
                peer.listen()
            if role == "told":
                helper = threading.Thread(target=_follow, args=(book, peer, turn))
                helper.start()
            signal.setitimer(signal.ITIMER_REAL, 0.7)
            with pytest.raises(TimeoutError, match="mine") as kept:
                book.record("a", **asked)
            assert not GATE._is_owned()
            turn.leave()
            if role == "follower":
                taken_back, _ = peer.accept()
                with taken_back:
                    assert taken_back.recv(2**17)
                    assert taken_back.recv(1) == b""
    finally:
        signal.signal(signal.SIGALRM, before)
    assert kept.value.__traceback__ is not None
    book.record("a", **asked)
    assert sorted(_questions(book)) == (["a", "b"] if role == "told" else ["a"])


def _follow(book: Ledger, peer: socket.socket, turn: Turn) -> None:
    _await(lambda: _named(book))
    peer.connect(group_commit._name(look(book.path)))
    peer.send(_draft(book, "b"))
    turn.leave()


def test_a_leader_takes_in_no_more_than_it_can(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In number, in bytes and in time; the others ask the next one."""
    monkeypatch.setattr(group_commit, "_MOST_DRAFTS", 3)
    delivered, answers = _answers(book, *(_draft(book, f"{at}", "0") for at in range(4)))
    assert (delivered, answers) == (b"of own", [b"done"] * 3 + [b""])
    monkeypatch.undo()
    monkeypatch.setattr(group_commit, "_MOST_BYTES", 1)
    Ledger.create(book.path.with_name("b.ledger"), epsilon=1, unit="person")
    other = Ledger.open(book.path.with_name("b.ledger"))
    delivered, answers = _answers(other, *(_draft(other, f"{at}", "0") for at in range(2)))
    assert (delivered, answers) == (b"of own", [b"done", b""])
    monkeypatch.undo()
    monkeypatch.setattr(group_commit, "_LONGEST_LOOK", 0)
    other.path.unlink()
    other = Ledger.create(other.path, epsilon=1, unit="person")
    delivered, answers = _answers(other, *(_draft(other, f"{at}", "0") for at in range(2)))
    assert (delivered, answers) == (b"of own", [b"done", b""])
    other.path.unlink()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_leader_that_is_killed_loses_no_followers(tmp_path: Path) -> None:
    """At each point of its own draft and of theirs; all have their entries, once."""
    followers = 4
    kills = drive("handed over", tmp_path, followers)
    assert len(kills) == 3 + 2 * (1 + followers)
    for kill in kills:
        assert kill["killed"]
        assert kill["clean"]
        assert kill["spent_is_sum"]
        assert kill["same_bytes"]
        assert (kill["delivered"], kill["unrecorded"]) == (followers, 0)
        # Its own entry is there if it came to the commit; nobody has seen it.
        assert kill["undelivered"] == (kill["point"] == "after commit")
        assert kill["number"] == followers + kill["undelivered"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_crowd_that_is_killed_one_by_one_loses_nothing(tmp_path: Path) -> None:
    """60 kills and 30 interrupts at random moments of 12 processes that charge."""
    crowd, kills = 12, 60
    seen = drive("killed crowd", tmp_path, crowd, kills)
    assert seen["statuses"] == [-signal.SIGKILL]
    assert seen["delivered"] > crowd
    assert seen["unrecorded"] == 0
    assert seen["spent_is_sum"]
    # Only who is stopped between commit and delivery leaves an entry that nobody has seen.
    assert 0 <= seen["undelivered"] <= kills + kills // 2 + crowd
    assert seen["shared"] > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_child_does_not_keep_its_parents_name(tmp_path: Path) -> None:
    """Forked in a signal's handler while its parent listens, it has no socket."""
    assert drive("forked within", tmp_path) == {"clean": True, "lines": [[1], ["child", 0]]}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
def test_another_user_is_neither_asked_nor_served(tmp_path: Path) -> None:
    """No draft goes to another user's process, and none is taken from one."""
    seen = drive("strangers", tmp_path)
    assert seen["told"][0] == [0]
    assert [] not in seen["told"][1]
    assert seen["entries"] == ["first", "second"]
