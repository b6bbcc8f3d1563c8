"""Work in a process of its own, so that its time and memory are its own too."""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from shoal.errors import InputError, ShoalError


def apart(job: Callable[..., Iterator[Any]], *arguments: object) -> Iterator[Any]:
    """What a generator yields in a new process; one that is killed is an InputError."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(send, job, arguments))
    process.start()
    send.close()
    try:
        while (found := _next(receive)) is not None:
            if isinstance(found, ShoalError):
                raise found
            yield found[0]
    finally:
        receive.close()
        process.terminate()
        process.join()


def peak() -> float:
    """GiB that this process has held at most."""
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _next(receive: Connection) -> Any:
    try:
        return receive.recv()
    except EOFError:
        return InputError(
            "a process that ended before its work did",
            "sizes for which this machine has the memory",
            "measure something smaller",
        )


def _work(send: Connection, job: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]) -> None:
    try:
        for found in job(*arguments):
            send.send((found,))
    except ShoalError as error:
        send.send(error)
    except (MemoryError, OverflowError, ValueError) as error:
        send.send(
            InputError(
                f"sizes that end in {type(error).__name__}",
                "sizes for which this machine has the memory",
                "measure something smaller",
            )
        )
    except BrokenPipeError:
        return
    else:
        send.send(None)
