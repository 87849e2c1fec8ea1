"""What Acme's environment loop uses of dm-launchpad, which has no wheels for CPython 3.11.

Launchpad calls the handlers when a distributed program is stopped. Here there is none to stop.
"""

from collections.abc import Callable
from typing import Any

_handlers: list[Callable[[], Any]] = []


def register_stop_handler(handler: Callable[[], Any]) -> None:
    """Remembers a handler, until it is taken back."""
    _handlers.append(handler)


def unregister_stop_handler(handler: Callable[[], Any]) -> None:
    """Takes a handler back.

    Raises:
      ValueError: If it is not registered.
    """
    _handlers.remove(handler)
