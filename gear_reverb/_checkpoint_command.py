"""The command `gear-reverb checkpoint`: checkpoints on their way to dm-reverb."""

import argparse
import sys
from collections.abc import Sequence

from gear_reverb import pybind


def main(argv: Sequence[str]) -> int:
    """Runs `gear-reverb checkpoint ARGV...` and returns the exit status.

    `export PATH OUT` writes the checkpoint `PATH`, or the newest in the directory `PATH`, as a new
    dm-reverb checkpoint in the directory `OUT`, and prints its path. The other way needs no
    command: a server restores a checkpoint of dm-reverb as it is.

    Raises:
      SystemExit: For arguments that are not understood, with status 2.
    """
    parser = argparse.ArgumentParser(
        prog="gear-reverb checkpoint", description=__doc__.partition(": ")[2]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser(
        "export",
        help="write a checkpoint that dm-reverb's DefaultCheckpointer restores",
        description="Writes a checkpoint that dm-reverb's DefaultCheckpointer(OUT) restores.",
    )
    export.add_argument("path", metavar="PATH", help="a checkpoint, or a directory of them")
    export.add_argument("out", metavar="OUT", help="directory to make the new checkpoint in")
    arguments = parser.parse_args(argv)
    try:
        print(pybind.export_checkpoint(arguments.path, arguments.out))
    except (IndexError, NotImplementedError, RuntimeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0
