"""Faults in where randomness comes from."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_EXACT = ("tests/privacy/test_noise_exact.py",)
_NOISE = ("tests/privacy/test_noise.py",)

FAULTS = (
    Fault(
        "exact noise has a scale that is 1% low",
        "G-ACCOUNTING",
        "privacy/noise.py",
        "distance, 2.0**lattice_bits)",
        "distance, 0.99 * 2.0**lattice_bits)",
        _EXACT,
    ),
    Fault(
        "noise of one chunk is used for all",
        "G-ACCOUNTING",
        "privacy/noise.py",
        "return [number for part in pool.map(measurement, chunks) for number in part]",
        "first = [y - x for x, y in zip(chunks[0], measurement(chunks[0]), strict=True)]\n"
        "        return [x + z for part in chunks for x, z in zip(part, first)]",
        _NOISE,
    ),
    Fault(
        "all numbers of a release get the same noise",
        "G-ACCOUNTING",
        "cells/draw.py",
        "return Drawn(add(exact, self.bits), chosen)",
        "moved = add(exact[:1], self.bits)[0] - exact[0]\n"
        "        return Drawn([x + moved for x in exact], chosen)",
        _EXACT,
    ),
    Fault(
        "the second moment gets the noise of the mean",
        "G-ACCOUNTING",
        "cells/draw.py",
        "return Drawn(add(exact, self.bits), chosen)",
        "size, noisy = self.design.n_numbers, add(exact, self.bits)\n"
        "        moved = [y - x for x, y in zip(exact, noisy, strict=True)]\n"
        "        return Drawn([x + moved[at % size] for at, x in enumerate(exact)], chosen)",
        _EXACT,
    ),
    Fault(
        "Laplace noise where Gaussian noise was planned",
        "G-ACCOUNTING",
        "cells/draw.py",
        "add = noise.add_gaussian if self.gaussian else noise.add_laplace",
        "add = noise.add_laplace",
        _EXACT,
    ),
    Fault(
        "a real release draws simulated noise",
        "G-REPLAY",
        "privacy/noise.py",
        "        return OperatingSystem()\n    if not isinstance",
        "        return Simulated(0)\n    if not isinstance",
        _EXACT,
    ),
    Fault(
        "fair bits come from a seeded generator",
        "G-EXACT",
        "privacy/noise.py",
        "np.frombuffer(os.urandom(part.nbytes), dtype=np.uint64)",
        "np.random.default_rng(0).integers(2**64, size=len(part), dtype=np.uint64)",
        _EXACT,
    ),
    Fault(
        "fair bits repeat after a million words",
        "G-EXACT",
        "privacy/noise.py",
        "            part[:] = np.frombuffer(os.urandom(part.nbytes), dtype=np.uint64)",
        "            part[:] = (\n"
        "                words[: len(part)]\n"
        "                if at\n"
        "                else np.frombuffer(os.urandom(part.nbytes), dtype=np.uint64)\n"
        "            )",
        _EXACT,
    ),
    Fault(
        "selections have half the noise",
        "G-SELECTION",
        "privacy/noise.py",
        "dp.max_divergence(), scale=scale)",
        "dp.max_divergence(), scale=scale / 2)",
        _EXACT,
    ),
    Fault(
        "selections have a scale that is 1% low",
        "G-SELECTION",
        "privacy/noise.py",
        "dp.max_divergence(), scale=scale)",
        "dp.max_divergence(), scale=0.99 * scale)",
        _EXACT,
    ),
    Fault(
        "numbers off the lattice are refused instead of clamped",
        "G-REPLAY",
        "privacy/noise.py",
        "return [min(max(number, 0), LARGEST_STEPS) for number in steps]",
        "return steps",
        _NOISE,
    ),
    Fault(
        "simulated Gaussian noise keeps too many far draws",
        "G-SIMULATED",
        "privacy/noise.py",
        "kept = 2 * rng.exponential(size=2 * size)",
        "kept = 3 * rng.exponential(size=2 * size)",
        _NOISE,
    ),
    Fault(
        "a simulation may be recorded in a ledger",
        "G-SIMULATION",
        "privacy/noise.py",
        "    if recorded:\n",
        "    if recorded and noise.seed < 0:\n",
        _EXACT,
    ),
)
