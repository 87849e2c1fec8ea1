"""Servers of the GPU check, with one table each."""

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

import gear_reverb
from gear_reverb import rate_limiters, selectors

TABLE = "t"


@contextlib.contextmanager
def client_of_none(
    items: int, placement: Literal["host", "device"] = "host", sampler: Any = None
) -> Iterator[gear_reverb.Client]:
    """Of a server with a table that has room for so many items; uniform unless told otherwise."""
    sampler, remover = sampler or selectors.Uniform(), selectors.Fifo()
    limiter = rate_limiters.MinSize(1)
    table = gear_reverb.Table(TABLE, sampler, remover, items, limiter, placement=placement)
    server = gear_reverb.Server([table])
    try:
        yield server.localhost_client()
    finally:
        server.stop()
