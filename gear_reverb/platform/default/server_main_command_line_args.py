"""The command line of `reverb_server`."""

import argparse

from google.protobuf import text_format

from gear_reverb.server_executable import reverb_config_pb2


def get_server_config_proto() -> reverb_config_pb2.ReverbServerConfig:
    """The configuration that `sys.argv` gives.

    Raises:
      SystemExit: After a message, if the arguments or the configuration cannot be read.
    """
    parser = argparse.ArgumentParser(
        prog="reverb_server", description="Hosts the tables of a configuration."
    )
    parser.add_argument(
        "--config", required=True, metavar="TEXTPROTO", help="a ReverbServerConfig in text format"
    )
    parser.add_argument(
        "--port", type=int, help="port to listen on, in place of the configuration's; 0 for any"
    )
    arguments = parser.parse_args()
    config = reverb_config_pb2.ReverbServerConfig()
    try:
        text_format.Parse(arguments.config, config)
    except text_format.ParseError as error:
        parser.error(f"--config: {error}")
    if arguments.port is not None:
        config.port = arguments.port
    return config
