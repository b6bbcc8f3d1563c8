"""Faults in what documents and columns are taken for: strict reading, private columns, order."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_PLAIN = ("tests/documents/test_plain_json.py",)
_PACKED = ("tests/documents/test_packed.py",)
_FAMILIES = ("tests/checks/roles/test_families.py",)
_MEMORY = ("tests/checks/roles/test_memory.py",)
_ORDER = ("tests/cells/test_order.py",)

FAULTS = (
    Fault(
        "a document may be written in more than one way",
        "G-CANONICAL",
        "documents/strict_json.py",
        "same = _written(found) == text",
        "same = len(_written(found)) > 0",
        _PLAIN,
    ),
    Fault(
        "a pipe is read as a file",
        "G-FUZZ",
        "documents/__init__.py",
        "if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:",
        "if found.st_size > MOST_BYTES:",
        _PLAIN,
    ),
    Fault(
        "a packed column may have bytes behind its end",
        "G-CANONICAL",
        "documents/packed.py",
        "if len(raw) != size or not stream.eof or stream.unused_data:",
        "if len(raw) != size or not stream.eof:",
        _PACKED,
    ),
    Fault(
        "a packed column may be wider than it needs to be",
        "G-CANONICAL",
        "documents/packed.py",
        'sound = packed["type"] == _smallest(found) and',
        "sound =",
        _PACKED,
    ),
    Fault(
        "a packed column may be longer than it says",
        "G-CANONICAL",
        "documents/packed.py",
        "raw = stream.decompress(data, size + 1)",
        "raw = stream.decompress(data, size + 1)[:size]",
        _PACKED,
    ),
    Fault(
        "ten is read as 10 and as 10.0",
        "G-CANONICAL",
        "documents/json_schema.py",
        '"number": (float,),',
        '"number": (int, float),',
        ("tests/documents/test_number_forms.py",),
    ),
    Fault(
        "a packed column may be far longer than what it is packed in",
        "G-FUZZ",
        "documents/packed.py",
        "return size <= max(_FREE, _RATIO * packed)",
        "return size <= max(64 * _FREE, 4 * _RATIO * packed)",
        (*_PACKED, "tests/verification/cells/test_size.py"),
    ),
    Fault(
        "a private column is told by its exact name alone",
        "G-ROLES",
        "checks/roles.py",
        "name.casefold() == each.casefold() for each in names",
        "name == each for each in names",
        (*_FAMILIES, "tests/data/test_bad_records.py"),
    ),
    Fault(
        "only the first of the public columns is compared with the private one",
        "G-ROLES",
        "checks/roles.py",
        "names = [given] if isinstance(given, str) else given or ()",
        "names = [given] if isinstance(given, str) else (given or ())[:1]",
        (*_FAMILIES, "tests/data/test_bad_records.py"),
    ),
    Fault(
        "the same memory may be private and public",
        "G-ROLES",
        "checks/roles.py",
        "if column is not None and given is not None and shared(column, given):",
        "if column is not None and given is not None and column is given:",
        _FAMILIES,
    ),
    Fault(
        "a view that is too hard to compare counts as apart",
        "G-ROLES",
        "checks/shared_memory.py",
        "    except np.exceptions.TooHardError:\n        return True",
        "    except np.exceptions.TooHardError:\n        return False",
        _MEMORY,
    ),
    Fault(
        "memory that ends where the other's begins is the end of the search",
        "G-ROLES",
        "checks/shared_memory.py",
        "(first < np.uint64(high)) & (last > np.uint64(low))",
        "(first <= np.uint64(low)) & (last >= np.uint64(high))",
        _MEMORY,
    ),
    Fault(
        "users come in the order of their first rows",
        "G-ROWS",
        "data/keys.py",
        "return ranked(array, name)[1]",
        "return as_array(array, name).dictionary_encode().indices.to_numpy("
        "zero_copy_only=False).astype(np.int64)",
        _ORDER,
    ),
    Fault(
        "users with equal counts come in the order of their cells' rows",
        "G-ROWS",
        "data/occupancy.py",
        "    rank = np.lexsort(\n        (\n            np.add.reduceat(mark, starts),",
        "    rank = np.lexsort(\n        (\n            np.minimum.reduceat(order, starts),",
        (*_ORDER, "tests/data/test_occupancy.py"),
    ),
    Fault(
        "means of users are added in the order of their records",
        "G-ROWS",
        "means/one_value_per_user.py",
        "        whole = np.rint(np.ldexp(rest, -each))\n",
        "        whole = np.ldexp(rest, -each) if turn == 1 else 0 * rest\n",
        ("tests/means/test_order.py",),
    ),
)
