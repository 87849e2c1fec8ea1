"""Runs every test on each pair of client and server that the installed libraries make.

`ours_ours` always runs. Where dm-reverb is installed, so do `reverb_reverb` (what the tests say is
what Reverb does), `reverb_ours` (its client, our server) and `ours_reverb`; where it is not, these
three are not collected, which `test_pairs.py` counts and explains as one skip.

* `pair`: one pair, for behaviour that can be seen from outside.
* `our_client`, `our_server`: the pairs in which that side is ours, where Reverb's hangs, aborts or
  is plainly wrong. Each such test has its line in DIVERGENCES.md.
* `lib`: one library, for what happens on one side alone (arguments, Python objects).
"""

import contextlib
import faulthandler
import gc
import importlib
import importlib.util
import os
import random
import socket
import threading
import time
import types

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Calls of ours to a server that is gone end with an error after so many seconds, which one that is
# there, but slow, has to accept a connection.
os.environ.setdefault("GEAR_REVERB_CONNECT_TIMEOUT", "10")

# No call of a test takes longer, unless it hangs. Generous: the machine may be busy.
CALL_SECONDS = 30.0
# One that does not return in time is waited for so long again: that tells slow from hung.
LATE_SECONDS = 15.0
# Every test as a whole; the process dies with a traceback of every thread.
TEST_SECONDS = 120


def _installed() -> dict[str, str]:
    """The module of each side that is there."""
    sides = {"ours": "gear_reverb", "reverb": "reverb"}
    return {side: name for side, name in sides.items() if importlib.util.find_spec(name)}


LIBRARIES = _installed()
PAIRS = [f"{client}_{server}" for client in LIBRARIES for server in LIBRARIES]


@pytest.fixture(autouse=True)
def _leave_nothing_to_others():
    """What a test leaves in cycles ends here: closing it may take time, and not another test's."""
    gc.freeze()  # So that only what is new is looked through.
    yield
    gc.collect()


class Hung(AssertionError):
    """A call that should have returned did not."""


def bounded(call, *args, seconds: float = CALL_SECONDS, **kwargs):
    """Returns or raises what the call does; fails with `Hung` if it does neither in time.

    The call runs in a thread of its own, for some of Reverb's calls can neither be interrupted nor
    given a deadline.
    """
    outcome = []

    def run():
        try:
            outcome.append((call(*args, **kwargs), None))
        except BaseException as error:  # Handed to the caller, whatever it is.
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    start = time.monotonic()
    thread.start()
    thread.join(seconds)
    if not outcome:
        faulthandler.dump_traceback(all_threads=True)
        thread.join(LATE_SECONDS)
        name = getattr(call, "__name__", call)
        late = f"{'but' if outcome else 'nor'} in {time.monotonic() - start:.1f} s"
        raise Hung(f"{name} did not return in {seconds} s, {late}")
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


class _Bounded:
    """Passes methods on to `raw`, each within CALL_SECONDS."""

    def __init__(self, raw):
        self.raw = raw

    def __getattr__(self, name):
        value = getattr(self.raw, name)
        if not isinstance(value, types.MethodType):
            return value

        def call(*args, **kwargs):
            return bounded(value, *args, **kwargs)

        return call


class Writer(_Bounded):
    """A writer that closes with its `with` block, also when an assertion fails in it."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            bounded(self.raw.__exit__, None, None, None)
        else:
            with contextlib.suppress(Exception):
                bounded(self.raw.close)


class Client(_Bounded):
    """A client whose `sample` gives a list, so that it is bounded as a whole."""

    def sample(self, *args, **kwargs):
        return bounded(lambda: list(self.raw.sample(*args, **kwargs)))

    def trajectory_writer(self, *args, **kwargs):
        return Writer(bounded(self.raw.trajectory_writer, *args, **kwargs))

    def writer(self, *args, **kwargs):
        return Writer(bounded(self.raw.writer, *args, **kwargs))

    def values(self, table: str, num_samples: int) -> list[int]:
        """The items' only value each, for items of one scalar."""
        return [
            int(s.data[0].item()) for s in self.sample(table, num_samples, emit_timesteps=False)
        ]

    def size(self, table: str) -> int:
        return self.server_info()[table].current_size


class Side:
    """One library, with what the tests make of it most."""

    def __init__(self, side: str):
        self.side = side
        self.module = importlib.import_module(LIBRARIES[side])

    @property
    def is_ours(self) -> bool:
        return self.side == "ours"

    def __getattr__(self, name):
        return getattr(self.module, name)

    def import_module(self, name: str):
        return importlib.import_module(f"{self.module.__name__}.{name}")

    def table(
        self, name="t", sampler=None, remover=None, max_size=100, rate_limiter=None, **options
    ):
        """A table that is a plain first-in first-out buffer, unless told otherwise."""
        return self.module.Table(
            name=name,
            sampler=sampler or self.module.selectors.Fifo(),
            remover=remover or self.module.selectors.Fifo(),
            max_size=max_size,
            rate_limiter=rate_limiter or self.module.rate_limiters.MinSize(1),
            **options,
        )

    def spec(self, shape, dtype):
        """One leaf of a signature; ours does without TensorFlow."""
        if self.is_ours:
            return self.module.TensorSpec(shape, dtype)
        import tensorflow as tf

        return tf.TensorSpec(shape, dtype)


class Pair:
    """A client of one library and servers of the same or the other one."""

    def __init__(self, name: str):
        self.name = name
        client, server = name.split("_")
        self.client_lib, self.server_lib = Side(client), Side(server)
        self._servers = []

    def table(self, *args, **kwargs):
        return self.server_lib.table(*args, **kwargs)

    @property
    def selectors(self):
        return self.server_lib.selectors

    @property
    def rate_limiters(self):
        return self.server_lib.rate_limiters

    def start(self, *tables, **options):
        """A server, stopped at the end of the test."""
        server = bounded(self.server_lib.Server, tables=list(tables), **options)
        self._servers.append(server)
        return server

    def connect(self, server) -> Client:
        return Client(self.client_lib.Client(f"localhost:{server.port}"))

    def serve(self, *tables, **options) -> Client:
        """A client of a new server with these tables; by default one table `t`."""
        return self.connect(self.start(*(tables or [self.table()]), **options))

    def stop(self):
        for server in self._servers:
            bounded(server.stop)


def pytest_generate_tests(metafunc):
    if "our_client" in metafunc.fixturenames:
        pairs = [name for name in PAIRS if name.startswith("ours_")]
        metafunc.parametrize("our_client", pairs, indirect=True)
    elif "our_server" in metafunc.fixturenames:
        pairs = [name for name in PAIRS if name.endswith("_ours")]
        metafunc.parametrize("our_server", pairs, indirect=True)
    elif "pair" in metafunc.fixturenames:
        metafunc.parametrize("pair", PAIRS, indirect=True)
    if "lib" in metafunc.fixturenames:
        metafunc.parametrize("lib", list(LIBRARIES), indirect=True)


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS, method="thread"))


def _one_pair(request):
    pair = Pair(request.param)
    yield pair
    pair.stop()


pair = pytest.fixture(name="pair")(_one_pair)
our_client = pytest.fixture(name="our_client")(_one_pair)
our_server = pytest.fixture(name="our_server")(_one_pair)


@pytest.fixture
def all_pairs():
    """Makes one `Pair` of each kind; the caller stops them."""
    return lambda: [Pair(name) for name in PAIRS]


@pytest.fixture
def impatient(monkeypatch):
    """For tests with a server that is gone."""
    monkeypatch.setenv("GEAR_REVERB_CONNECT_TIMEOUT", "2")


@pytest.fixture
def free_port():
    """Below those that the system hands out, so that nobody is given it meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as handed_out:
        first = int(handed_out.read().split()[0])
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", random.randrange(first // 2, first)))
            return probe.getsockname()[1]


@pytest.fixture
def our_lib():
    return Side("ours")


@pytest.fixture(scope="session")
def libs():
    """Every library that is there, ours first."""
    return [Side(side) for side in LIBRARIES]


@pytest.fixture
def lib(request):
    return Side(request.param)


@pytest.fixture(name="bounded")
def bounded_fixture():
    return bounded


@pytest.fixture
def hung():
    return Hung


@pytest.fixture
def describe():
    """A signature with each leaf as (shape, dtype name), the same for both libraries."""

    def leaf(spec):
        shape = None if spec.shape is None else tuple(spec.shape)
        dtype = getattr(spec.dtype, "as_numpy_dtype", spec.dtype)
        return shape, np.dtype(dtype).name

    def walk(nest):
        if isinstance(nest, dict):
            return {key: walk(value) for key, value in nest.items()}
        if isinstance(nest, (list, tuple)):
            return [walk(value) for value in nest]
        return leaf(nest)

    return walk
