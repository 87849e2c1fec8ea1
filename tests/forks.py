"""Forked children of a test."""

import os
import signal
import traceback

SECONDS = 60  # For what should end at once; the machine may be busy.


def in_child(act):
    """The exit status of a forked child that does this: 0, or that of an error or a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS)  # Ends one that hangs.
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]
