"""Faults in what documents and columns are taken for: strict reading, private columns, order."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_PLAIN = ("tests/documents/test_plain_json.py",)
_PACKED = ("tests/documents/test_packed.py",)
_FAMILIES = ("tests/roles/test_families.py",)
_MEMORY = ("tests/roles/test_memory.py",)
_ORDER = ("tests/mechanisms/test_order.py",)

FAULTS = (
    Fault(
        "a document may be written in more than one way",
        "G-CANONICAL",
        "plain_json.py",
        "same = _written(found) == text",
        "same = len(_written(found)) > 0",
        _PLAIN,
    ),
    Fault(
        "a pipe is read as a file",
        "G-FUZZ",
        "documents.py",
        "if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:",
        "if found.st_size > MOST_BYTES:",
        _PLAIN,
    ),
    Fault(
        "a packed column may have bytes behind its end",
        "G-CANONICAL",
        "packed.py",
        "if len(raw) != size or not stream.eof or stream.unused_data:",
        "if len(raw) != size or not stream.eof:",
        _PACKED,
    ),
    Fault(
        "a packed column may be wider than it needs to be",
        "G-CANONICAL",
        "packed.py",
        'sound = packed["type"] == _smallest(found) and',
        "sound =",
        _PACKED,
    ),
    Fault(
        "a packed column may be longer than it says",
        "G-CANONICAL",
        "packed.py",
        "raw = stream.decompress(data, size + 1)",
        "raw = stream.decompress(data, size + 1)[:size]",
        _PACKED,
    ),
    Fault(
        "ten is read as 10 and as 10.0",
        "G-CANONICAL",
        "schema.py",
        '"number": (float,),',
        '"number": (int, float),',
        ("tests/documents/test_number_forms.py",),
    ),
    Fault(
        "a packed column may be far longer than what it is packed in",
        "G-FUZZ",
        "packed.py",
        "return size <= max(_FREE, _RATIO * packed)",
        "return size <= max(64 * _FREE, 4 * _RATIO * packed)",
        (*_PACKED, "tests/release/test_verify_size.py"),
    ),
    Fault(
        "a private column is told by its exact name alone",
        "G-ROLES",
        "roles.py",
        "name.casefold() == each.casefold() for each in names",
        "name == each for each in names",
        (*_FAMILIES, "tests/records/test_bad_records.py"),
    ),
    Fault(
        "only the first of the public columns is compared with the private one",
        "G-ROLES",
        "roles.py",
        "names = [given] if isinstance(given, str) else given or ()",
        "names = [given] if isinstance(given, str) else (given or ())[:1]",
        (*_FAMILIES, "tests/records/test_bad_records.py"),
    ),
    Fault(
        "the same memory may be private and public",
        "G-ROLES",
        "roles.py",
        "if column is not None and given is not None and shared(column, given):",
        "if column is not None and given is not None and column is given:",
        _FAMILIES,
    ),
    Fault(
        "a view that is too hard to compare counts as apart",
        "G-ROLES",
        "memory.py",
        "    except np.exceptions.TooHardError:\n        return True",
        "    except np.exceptions.TooHardError:\n        return False",
        _MEMORY,
    ),
    Fault(
        "memory that ends where the other's begins is the end of the search",
        "G-ROLES",
        "memory.py",
        "(first < np.uint64(high)) & (last > np.uint64(low))",
        "(first <= np.uint64(low)) & (last >= np.uint64(high))",
        _MEMORY,
    ),
    Fault(
        "users come in the order of their first rows",
        "G-ROWS",
        "records/keys.py",
        "return ranked(array, name)[1]",
        "return as_array(array, name).dictionary_encode().indices.to_numpy("
        "zero_copy_only=False).astype(np.int64)",
        _ORDER,
    ),
    Fault(
        "users with equal counts come in the order of their cells' rows",
        "G-ROWS",
        "records/occupancy.py",
        "    rank = np.lexsort(\n        (\n            np.add.reduceat(mark, starts),",
        "    rank = np.lexsort(\n        (\n            np.minimum.reduceat(order, starts),",
        (*_ORDER, "tests/records/test_occupancy.py"),
    ),
    Fault(
        "means of users are added in the order of their records",
        "G-ROWS",
        "unbiased/people.py",
        "        whole = np.rint(np.ldexp(rest, -each))\n",
        "        whole = np.ldexp(rest, -each) if turn == 1 else 0 * rest\n",
        ("tests/unbiased/test_order.py",),
    ),
)
