"""Tables and sizes for tests that run a server."""

import gear_reverb
from gear_reverb import rate_limiters, selectors


def make_table(name="t", **options):
    options = {
        "sampler": selectors.Fifo(),
        "remover": selectors.Fifo(),
        "max_size": 100,
        "rate_limiter": rate_limiters.MinSize(1),
        **options,
    }
    return gear_reverb.Table(name, **options)


def sizes(client):
    return {name: info.current_size for name, info in client.server_info().items()}
