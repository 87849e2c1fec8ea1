"""The command `gear-reverb`, or `python -m gear_reverb`."""

import sys
from collections.abc import Sequence

USAGE = """usage: gear-reverb COMMAND ...

commands:
  run         run a program written for dm-reverb, unmodified: run SCRIPT|-m MODULE [ARGUMENT ...]
  checkpoint  convert checkpoints: checkpoint export PATH OUT writes one that dm-reverb restores"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command that the arguments, by default those of the process, name."""
    command, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or [""]
    if command == "run":
        from gear_reverb import _run

        _run.run(rest)
    elif command == "checkpoint":
        from gear_reverb import _checkpoint_command

        raise SystemExit(_checkpoint_command.main(rest))
    elif command in ("-h", "--help"):
        print(USAGE)
    else:
        raise SystemExit(f"{USAGE}\n\nUnknown command {command!r}." if command else USAGE)


if __name__ == "__main__":
    main()
