# SPDX-License-Identifier: ISC
"""Reading and writing the non-blocking descriptors that a machine hands out."""
import asyncio
import os


async def readable(fd):
    """Wait until a read of fd would not block."""
    await _ready(fd, "reader")


async def writable(fd):
    await _ready(fd, "writer")


async def _ready(fd, kind):
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    getattr(loop, "add_" + kind)(fd, lambda: ready.done() or ready.set_result(True))
    try:
        await ready
    finally:
        getattr(loop, "remove_" + kind)(fd)


async def read_some(fd, limit):
    """What is there, at most `limit` bytes; b"" at the end (which a terminal tells as EIO)."""
    while True:
        try:
            return os.read(fd, limit)
        except BlockingIOError:
            await readable(fd)
        except OSError:
            return b""


async def write_all(fd, data):
    """Write everything, waiting for the reader; OSError when it is gone."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view):]
        except BlockingIOError:
            await writable(fd)
