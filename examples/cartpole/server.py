"""The replay server's process."""

import dataclasses

from config import Config
from tables import make_tables
from workers import Link

import gear_reverb as reverb


@dataclasses.dataclass(frozen=True)
class Serving:
    port: int


def serve(link: Link, config: Config, port: int | None = None) -> None:
    server = reverb.Server(make_tables(config), port=port)
    link.report(Serving(server.port))
    link.stop_requested(wait_seconds=None)
    server.stop()
