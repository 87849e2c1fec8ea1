"""The program `reverb_server`: hosts the tables of a configuration until SIGTERM or Ctrl-C.

    reverb_server --config='port: 8000 tables { table_name: "queue" ... }'

The configuration is a `ReverbServerConfig` in protobuf's text format.
"""

import contextlib
import logging
import signal
import sys
from collections.abc import Sequence

from gear_reverb.platform.default import server_main_command_line_args
from gear_reverb.server import Server
from gear_reverb.server_executable import reverb_config_pb2, server_from_proto

_logger = logging.getLogger("reverb_server")


def main(unused_argv: Sequence[str]) -> None:
    """Serves until the server is stopped. The command line is read from `sys.argv`.

    Raises:
      SystemExit: With a reason, if the command line, a table or the port will not do.
    """
    config = server_main_command_line_args.get_server_config_proto()
    with contextlib.suppress(KeyboardInterrupt):
        _serve(config)
    _logger.info("Stopped.")


def _serve(config: reverb_config_pb2.ReverbServerConfig) -> None:
    """Serves until SIGINT."""
    try:
        tables = server_from_proto.tables_from_proto(config.tables)
        server = Server(tables=tables, port=config.port or None)
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise SystemExit(f"reverb_server: {error}") from error
    names = ", ".join(table.name for table in tables)
    _logger.info("Serving %d tables at port %d: %s", len(tables), server.port, names)
    server.wait()


def app_run_main() -> None:
    """The entry point of the command."""
    # SIGTERM is as good as Ctrl-C, from before the server waits.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    main(sys.argv)


if __name__ == "__main__":
    app_run_main()
