"""Clients are pickled as their address."""

import copy
import pickle


def test_round_trip(pair, bounded):
    client = pair.serve()
    client.insert([7], {"t": 1.0})
    again = pickle.loads(pickle.dumps(client.raw))
    assert isinstance(again, pair.client_lib.Client)
    assert again.server_address == client.raw.server_address
    assert bounded(again.server_info)["t"].current_size == 1
    [[step]] = bounded(lambda: list(again.sample("t", 1)))
    assert step.data[0] == 7


def test_deep_copy(pair, bounded):
    client = pair.serve()
    again = copy.deepcopy(client.raw)
    bounded(again.insert, [7], {"t": 1.0})
    assert client.size("t") == 1


def test_no_connection_is_needed(lib):
    client = lib.Client("localhost:1")
    assert pickle.loads(pickle.dumps(client)).server_address == "localhost:1"


def test_its_text_has_the_address(lib):
    assert "localhost:1234" in repr(lib.Client("localhost:1234"))


def test_samples_can_be_pickled(pair):
    client = pair.serve()
    client.insert([7], {"t": 2.0})
    [sample] = client.sample("t", emit_timesteps=False)
    again = pickle.loads(pickle.dumps(sample))
    assert again.info == sample.info and again.data[0].tolist() == [7]
