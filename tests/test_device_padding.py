"""Items of different lengths that a device draws by itself, on the kernels' twin."""

import numpy as np
import pytest
from batches import insert, steps
from devices import ON_DEVICE
from tables import make_table

import gear_reverb
from gear_reverb import selectors

# A device has the data of a server in its process.
pytestmark = pytest.mark.other_plane


def rollouts(rng, lengths):
    """Items as of language models: tokens, log probabilities, and bytes."""
    return [
        [
            {
                "logprob": np.float32(rng.standard_normal()),
                "mask": rng.integers(0, 2, 3, np.uint8),
                "token": np.int32(rng.integers(50000)),
            }
            for _ in range(length)
        ]
        for length in lengths
    ]


def stacked(item):
    return [np.stack([step[name] for step in item]) for name in sorted(item[0])]


def check(batch, items, room):
    """`items`: their columns, by priority."""
    assert batch.mask.shape == (len(batch.info.key), room) and batch.mask.dtype == bool
    assert batch.lengths.dtype == np.int32
    for i, priority in enumerate(batch.info.priority):
        wanted = items[priority]
        length = len(wanted[0])
        assert batch.lengths[i] == length
        np.testing.assert_array_equal(batch.mask[i], np.arange(room) < length)
        for column, expected in zip(batch.data, wanted):
            assert column.shape[1] == room
            np.testing.assert_array_equal(column[i, :length], expected)
            assert not column[i, length:].any()


@pytest.mark.parametrize("draw", ["device", "top_k"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_are_filled_up(serve, draw, prefetch):
    client = serve(make_table(sampler=selectors.MaxHeap()))
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 60, 40).tolist()
    items = rollouts(rng, lengths)
    insert(client, items, priority=[float(i) for i in range(40)])
    contents = {float(i): stacked(item) for i, item in enumerate(items)}
    options = {**ON_DEVICE, "draw": draw, "ragged": "pad", "prefetch": prefetch}
    for pad_to in (None, 77):
        with client.batch_sampler("t", 16, pad_to=pad_to, beta=0.5, **options) as sampler:
            before = sampler.device_stats()  # Of all that use the device.
            for _ in range(3):
                batch = next(sampler)
                assert sampler.device_stats()["why_host_draws"] == ""
                check(batch, contents, pad_to or max(lengths))
            assert sampler.device_stats()["why_host_draws"] == ""
        stats = sampler.device_stats()  # Nothing is drawn ahead any more.
    item_bytes = 4 + 3 + 4
    mean = sum(lengths) * item_bytes // 40
    gathered, batches = (stats[name] - before[name] for name in ("gathered_bytes", "batches"))
    assert gathered == batches * 16 * mean  # Padding is not counted.


def test_arrays_grow_with_the_longest_item(serve):
    client = serve(make_table(max_size=3))
    rng = np.random.default_rng(2)
    contents = {}
    options = {**ON_DEVICE, "draw": "device", "ragged": "pad", "prefetch": 0}
    with client.batch_sampler("t", 8, **options) as sampler:
        longest = 0
        for number, length in enumerate([4, 2, 9, 1, 1, 1, 1, 12]):
            [item] = rollouts(rng, [length])
            insert(client, [item], priority=float(number))
            contents[float(number)] = stacked(item)
            longest = max(longest, length)
            check(next(sampler), contents, longest)
        assert sampler.device_stats()["why_host_draws"] == ""


def test_columns_of_different_lengths_have_their_own_sides(serve):
    client = serve(make_table(signature=None))
    with client.trajectory_writer(num_keep_alive_refs=8) as writer:
        for i in range(6):
            for j in range(8):
                writer.append({"a": np.float32(10 * i + j), "b": np.int32([i, j])})
            history = writer.history
            columns = {"a": history["a"][-1 - i :], "b": history["b"][-3:]}
            writer.create_item("t", 1.0 + i, columns | {"last": history["a"][-1]})
            writer.end_episode()
    options = {**ON_DEVICE, "draw": "device", "ragged": "pad"}
    with client.batch_sampler("t", 20, **options) as sampler:
        batch = next(sampler)
    assert [column.shape for column in batch.data] == [(20, 6), (20, 3, 2), (20,)]
    assert batch.lengths[2] is None and batch.mask[2] is None
    np.testing.assert_array_equal(batch.lengths[0], batch.info.priority)
    np.testing.assert_array_equal(batch.lengths[1], [3] * 20)
    np.testing.assert_array_equal(batch.mask[0].sum(1), batch.lengths[0])
    assert batch.mask[1].all()


def test_the_host_draws_what_is_longer_than_asked_for(serve):
    client = serve(make_table(signature=None))
    insert(client, [steps(1, 2)])
    options = {**ON_DEVICE, "draw": "device", "ragged": "pad", "pad_to": 3}
    with client.batch_sampler("t", 2, prefetch=0, **options) as sampler:
        assert next(sampler).data[0].tolist() == [[1, 2, 0]] * 2
        client.reset("t")
        insert(client, [steps(1, 2, 3, 4)])
        with pytest.raises(ValueError, match=r"4 steps in item \d+, which is more than pad_to \(3"):
            next(sampler)
        why = "column 0 of an item has 4 steps, which is more than pad_to (3)"
        assert sampler.device_stats()["why_host_draws"] == why


def test_fixed_batches(serve):
    client = serve(make_table(max_size=20))
    rng = np.random.default_rng(3)
    contents = {}

    def add(number, length):
        [item] = rollouts(rng, [length])
        insert(client, [item], priority=float(number))
        contents[float(number)] = stacked(item)

    add(0, 5)
    options = {**ON_DEVICE, "ragged": "pad"}
    with (
        client.fixed_batch_sampler("t", 8, pad_to=30, beta=0.5, **options) as sampler,
        client.fixed_batch_sampler("t", 8, **options) as other,
    ):
        other.prepare()
        for number in range(1, 40):
            add(number, int(rng.integers(1, 30)))
            sampler.prepare()
            sampler.enqueue()
            check(sampler.batch, contents, 30)
        with pytest.raises(gear_reverb.ReverbError, match="pad_to may leave room"):
            other.prepare()
        add(40, 31)
        with pytest.raises(gear_reverb.ReverbError, match=r"more than pad_to \(30\)"):
            sampler.prepare()


def test_bad_arguments(serve):
    client = serve(make_table())
    device = {**ON_DEVICE, "draw": "device"}
    for arguments, message in [
        ({**device, "ragged": "pack"}, "draw='device' needs ragged='error' or 'pad'"),
        ({"pad_to": 3}, r"pad_to \(3\) needs ragged='pad'"),
        ({"ragged": "pack", "pad_to": 3}, r"pad_to \(3\) needs ragged='pad'"),
        ({"ragged": "pad", "pad_to": 0}, r"pad_to \(0\) must be in"),
        ({"ragged": "pad", "pad_to": 2**31}, "pad_to .* must be in"),
    ]:
        with pytest.raises(ValueError, match=message):
            client.batch_sampler("t", 2, **arguments)
        with pytest.raises(ValueError, match="pad_to|ragged"):
            arguments.pop("draw", None)
            client.fixed_batch_sampler("t", 2, **{**arguments, **ON_DEVICE})
