"""Faults in what processes that charge together do for one another."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_GROUP = ("tests/privacy/ledger/test_group_commit.py",)
_MESSAGE = ("tests/privacy/ledger/test_message.py",)

FAULTS = (
    Fault(
        "a leader that says it has charged is believed",
        "G-LEDGER",
        "privacy/ledger/recording.py",
        '    return shared or cast("Entry", operate(path, founding, record, write=True))',
        '    return cast("Entry", shared)',
        _GROUP,
    ),
    Fault(
        "a draft of another process may be of another unit",
        "G-UNIT",
        "privacy/ledger/recording.py",
        "            refuse_other_unit(last.unit, draft.unit)\n",
        "",
        _GROUP,
    ),
    Fault(
        "drafts of other processes are added to the same sum",
        "G-LEDGER",
        "privacy/ledger/recording.py",
        "                last = _enter(now, draft, last)\n",
        "                _enter(now, draft, last)\n",
        _GROUP,
    ),
    Fault(
        "a draft that is handed over twice is entered twice",
        "G-LEDGER",
        "privacy/ledger/recording.py",
        "            if now.chain.find(draft.question, draft.name) is None:\n",
        "            if now.chain is not None:\n",
        _GROUP,
    ),
    Fault(
        "what fails with a draft of another process fails for the leader",
        "G-LEDGER",
        "privacy/ledger/recording.py",
        "            if now.group.is_shared:\n",
        "            if now.group.told:\n",
        _GROUP,
    ),
    Fault(
        "every charge of a transaction counts as one that has written",
        "G-LEDGER",
        "privacy/ledger/hash_chain.py",
        "        if not self._moved:\n",
        "        if self.place:\n",
        _GROUP,
    ),
    Fault(
        "a draft goes to whoever listens",
        "G-LEDGER",
        "privacy/ledger/group_commit.py",
        "            if not _is_ours(self._leader):\n                return _NO\n",
        "",
        _GROUP,
    ),
    Fault(
        "every process is taken for one of the same user",
        "G-LEDGER",
        "privacy/ledger/group_commit.py",
        "return bool(_CREDENTIALS.unpack(found)[1] == os.geteuid())",
        "return bool(_CREDENTIALS.unpack(found))",
        _GROUP,
    ),
    Fault(
        "who has gone is charged",
        "G-REFUSE",
        "privacy/ledger/group_commit.py",
        "            follower.recv(1, socket.MSG_PEEK)\n    except BlockingIOError:\n"
        '        return message if len(message) <= _LONGEST else b""\n',
        "            return message[:_LONGEST]\n",
        _GROUP,
    ),
    Fault(
        "a leader that was interrupted goes on listening",
        "G-QUEUE",
        "privacy/ledger/group_commit.py",
        "        self._stop_listening()\n        self._stop_asking()\n",
        "        self._stop_asking()\n",
        _GROUP,
        inside="Group.leave",
    ),
    Fault(
        "a child keeps the name that its parent listens at",
        "G-QUEUE",
        "privacy/ledger/group_commit.py",
        "    os.register_at_fork(after_in_child=_close_all)",
        "    os.register_at_fork(after_in_parent=_OPEN.copy)",
        _GROUP,
    ),
    Fault(
        "a draft that is handed over may give losses back",
        "G-LEDGER",
        "privacy/ledger/message.py",
        "min(charge.epsilon, charge.delta) < 0 or ",
        "",
        _MESSAGE,
    ),
    Fault(
        "a draft that is handed over may be spelled in many ways",
        "G-LEDGER",
        "privacy/ledger/message.py",
        "return draft if encoded(ledger, draft) == message else None",
        "return draft if encoded(ledger, draft) else None",
        _MESSAGE,
    ),
)
