"""Priorities that lie where batches do, on the kernels' twin or a GPU."""

import numpy as np
import pytest
from batches import insert, steps
from devices import DEVICE, ON_DEVICE
from tables import make_table

from gear_reverb import selectors
from gear_reverb._device_priorities import _Here

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane


@pytest.fixture
def filled(serve):
    client = serve(make_table(sampler=selectors.Prioritized(1.0)))
    keys = client.insert_batch("t", [np.arange(40, dtype=np.int32)[:, None]], 1.0)
    return client, keys


def priorities_of(client):
    """By key, those that the table has."""
    found = {}
    with client.batch_sampler("t", 64) as sampler:
        for _ in range(40):
            batch = next(sampler)
            found.update(zip(batch.info.key.tolist(), batch.info.priority.tolist()))
    return found


@pytest.mark.parametrize("draw", ["host", "device"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_updates_reach_the_table_in_order(filled, draw, prefetch):
    client, _ = filled
    if DEVICE != "cpu":
        pytest.importorskip("torch")
    given = {}
    with client.batch_sampler("t", 8, draw=draw, prefetch=prefetch, **ON_DEVICE) as sampler:
        for number in range(30):
            batch = next(sampler)
            sampler.update_priorities(batch.info.key, batch.info.priority)
            keys = np.asarray(batch.info.key)
            given.update((int(key), 0.5 + number) for key in keys)
            sampler.update_priorities(keys, np.full(8, 0.5 + number))
        # Arrays were not looked at before they were there.
        sent_for = sampler._priorities._copies is not None
        assert sent_for == (DEVICE != "cpu" and draw == "device")
    found = priorities_of(client)
    assert len(given) > 20 and len(found) > 20
    for key, priority in found.items():
        assert priority == given.get(key, 1.0)


def test_the_next_batch_does_not_overwrite_what_is_sent(serve):
    client = serve(make_table(sampler=selectors.Uniform()))
    client.insert_batch("t", [np.arange(40, dtype=np.int32)[:, None]], 1.0)
    expected = {}
    with (
        client.fixed_batch_sampler("t", 4, seed=7, device="cpu") as twin,
        client.fixed_batch_sampler("t", 4, seed=7, **ON_DEVICE) as sampler,
    ):
        for number in range(1, 20):
            sampler.prepare()
            twin.prepare()
            sampler.enqueue()
            twin.enqueue()
            if DEVICE != "cpu":  # Whatever the copies' stream has yet to do.
                pytest.importorskip("torch").cuda.current_stream(0).synchronize()
            sampler.update_priorities(sampler.batch.info.key, np.full(4, float(number)))
            expected.update((int(key), float(number)) for key in twin.batch.info.key)
    found = priorities_of(client)
    assert len(found) > 20
    assert found == {key: expected.get(key, 1.0) for key in found}
    with pytest.raises(RuntimeError, match="closed"):
        sampler.update_priorities([1], [1.0])


def test_keys_of_64_bits_in_a_list(filled):
    client, keys = filled
    with client.batch_sampler("t", 4, prefetch=0, **ON_DEVICE) as sampler:
        sampler.update_priorities([int(keys[0]), 2**64 - 1, 1], [5.0, 1.0, 1.0])
    assert priorities_of(client)[int(keys[0])] == 5.0


@pytest.mark.skipif(DEVICE == "cpu", reason="for arrays on a GPU")
def test_copies_come_after_the_stream_that_is_given(serve):
    torch = pytest.importorskip("torch")
    client = serve(make_table(sampler=selectors.Uniform()))
    client.insert_batch("t", [np.arange(40, dtype=np.int32)[:, None]], 1.0)
    expected = {}
    stream = torch.cuda.Stream()
    address = stream.cuda_stream
    with (
        client.fixed_batch_sampler("t", 4, seed=8, device="cpu") as twin,
        client.fixed_batch_sampler("t", 4, seed=8, device=DEVICE, out="dlpack") as sampler,
    ):
        for number in range(1, 20):
            sampler.prepare(stream=address)
            twin.prepare()
            sampler.enqueue(stream=address)
            twin.enqueue()
            keys = sampler.batch.info.key
            sampler.update_priorities(keys, np.full(4, float(number)), stream=address)
            expected.update((int(key), float(number)) for key in twin.batch.info.key)
        with pytest.raises(ValueError, match="has no current stream"):
            sampler.update_priorities(keys, np.ones(4))
    found = priorities_of(client)
    assert found == {key: expected.get(key, 1.0) for key in found}


def test_errors_come_with_a_later_call(filled):
    client, keys = filled
    with client.batch_sampler("t", 4, prefetch=0, **ON_DEVICE) as sampler:
        for bad in ([1.0] * 3, [[1.0] * 3]):
            with pytest.raises(ValueError, match="There are 4 keys, but 3 priorities"):
                sampler.update_priorities(keys[:4], bad)
        with pytest.raises(ValueError, match="Priority must not be negative"):
            sampler.update_priorities(keys[:1], [-1.0])
        with pytest.raises(TypeError):
            sampler.update_priorities(["key"], [1.0])
        assert next(sampler).data is not None
        sampler.update_priorities(keys[:2], [3.0, 4.0])
        later = [(keys[2:3], [-1.0]), (keys[3:4], [8.0]), (keys[4:5], [np.nan])]
        sampler._priorities._pending.extend((_Here(k), _Here(np.array(p))) for k, p in later)
        with pytest.raises(ValueError, match="Priority must not be negative"):
            sampler.close()
        assert client.server_info()["t"].current_size == 40
    found = priorities_of(client)
    assert [found[int(key)] for key in (*keys[:2], keys[3])] == [3.0, 4.0, 8.0]


@pytest.mark.skipif(DEVICE == "cpu", reason="for arrays on a GPU")
def test_arrays_that_cannot_be_sent_for(serve):
    pytest.importorskip("torch")
    client = serve(make_table(signature=None))
    columns = {"half": np.float16(1), "matrix": np.zeros(3, np.float32), "byte": np.uint8(1)}
    insert(client, [[columns]])
    with client.batch_sampler("t", 4, ragged="error", **ON_DEVICE) as sampler:
        _, half, matrix = next(sampler).data
        with pytest.raises(ValueError, match="one axis"):
            sampler.update_priorities(np.arange(4), half)
        with pytest.raises(ValueError, match="There are 4 keys, but 12 priorities"):
            sampler.update_priorities(np.arange(4), matrix)
    client.reset("t")
    insert(client, [steps(1)])
    with client.batch_sampler("t", 4, **ON_DEVICE) as sampler:
        with pytest.raises(ValueError, match="one axis"):
            sampler.update_priorities(next(sampler).data[0], np.ones(4))
