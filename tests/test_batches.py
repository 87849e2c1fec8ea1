"""What is in a batch: the items that it is made of, as NumPy would put them together."""

import collections

import numpy as np
import pytest
import tree
from batches import insert, queue, steps
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import make_table

import gear_reverb
from gear_reverb import _dtypes, selectors
from gear_reverb.batch_sampler import compile_unflatten


def test_a_batch_stacks_what_sample_gives(client):
    items = [
        [{"a": np.full((2, 3), 10 * i + t, np.float32), "b": np.int64(t)} for t in range(4)]
        for i in range(6)
    ]
    insert(client, items, "q")
    singles = list(client.sample("q", 6, emit_timesteps=False))
    insert(client, items, "q")
    batch = client.sample_batch("q", 6, timeout=10)
    assert len(batch.data) == len(singles[0].data) == 2
    for column, leaf in enumerate(batch.data):
        expected = np.stack([single.data[column] for single in singles])
        assert leaf.dtype == expected.dtype
        np.testing.assert_array_equal(leaf, expected)
    for name in ("probability", "priority", "times_sampled"):
        np.testing.assert_array_equal(
            getattr(batch.info, name), [getattr(single.info, name) for single in singles]
        )
    assert batch.info.key.dtype == np.uint64
    assert batch.info.table_size.dtype == np.int64
    assert batch.info.times_sampled.dtype == np.int32
    assert (batch.lengths, batch.mask, batch.cu_seqlens, batch.weights) == (None,) * 4


def test_keys_are_those_of_the_items(client):
    insert(client, [steps(i) for i in range(3)], "q")
    batch = client.sample_batch("q", 3, timeout=10)
    assert len(set(batch.info.key)) == 3
    np.testing.assert_array_equal(batch.data[0], [[0], [1], [2]])


@pytest.mark.parametrize(
    "dtype", [*map(np.dtype, "? b h i q B H I Q e f d F D".split()), *_dtypes.EXTRA_DTYPES], ids=str
)
def test_every_dtype(serve, dtype):
    client = serve(queue())
    values = np.array([[[0, 1], [2, 3]], [[4, 5], [6, 1]]]).astype(dtype)
    insert(client, [[{"x": step} for step in item] for item in values], "q")
    batch = client.sample_batch("q", 2, timeout=10)
    assert batch.data[0].dtype == dtype
    np.testing.assert_array_equal(batch.data[0], values)


def test_text(client):
    insert(client, [[{"x": "a"}, {"x": ""}], [{"x": "bé"}]], "q")
    batch = client.sample_batch("q", 2, ragged="pad", timeout=10)
    assert batch.data[0].tolist() == [[b"a", b""], ["bé".encode(), b""]]
    insert(client, [[{"x": "a"}, {"x": ""}], [{"x": "bé"}]], "q")
    batch = client.sample_batch("q", 2, ragged="pack", timeout=10)
    assert batch.data[0].tolist() == [b"a", b"", "bé".encode()]


def test_data_has_the_structure_of_the_signature(serve):
    spec = gear_reverb.TensorSpec((None,), np.int32)
    client = serve(make_table(signature={"b": (spec, spec), "a": [spec]}))
    with client.trajectory_writer(1) as writer:
        writer.append({"b": (np.int32(1), np.int32(2)), "a": [np.int32(3)]})
        writer.create_item(
            "t",
            1.0,
            {
                "b": (writer.history["b"][0][:], writer.history["b"][1][:]),
                "a": [writer.history["a"][0][:]],
            },
        )
    with client.batch_sampler("t", 2) as sampler:
        data = next(sampler).data
    assert {key: type(value) for key, value in data.items()} == {"a": list, "b": tuple}
    assert (data["a"][0].tolist(), data["b"][1].tolist()) == ([[3]] * 2, [[2]] * 2)


def test_squeezed_columns_have_no_step_axis(serve):
    client = serve()
    with client.trajectory_writer(3) as writer:
        for value in range(3):
            writer.append({"x": np.float32(value), "y": np.float32(value)})
        writer.create_item("t", 1.0, {"x": writer.history["x"][-1], "y": writer.history["y"][:]})
    batch = client.sample_batch("t", 2, ragged="pad")
    assert [leaf.shape for leaf in batch.data] == [(2,), (2, 3)]
    assert batch.lengths.tolist() == [3, 3]


def test_padding_to_one_length(client):
    insert(client, [steps(1), steps(2, 3), steps(4)] * 2, "q")
    with client.batch_sampler("q", 3, ragged="pad", pad_to=3, timeout=10) as sampler:
        batch = next(sampler)
    assert batch.data[0].tolist() == [[1, 0, 0], [2, 3, 0], [4, 0, 0]]
    assert batch.lengths.tolist() == [1, 2, 1]
    assert batch.mask.sum(1).tolist() == [1, 2, 1] and batch.mask.shape == (3, 3)
    insert(client, [steps(1), steps(2, 3)], "q")
    with pytest.raises(ValueError, match=r"has 2 steps in item \d+, which is more than pad_to \(1"):
        client.sample_batch("q", 2, ragged="pad", pad_to=1, timeout=10)


def test_ragged_items_are_refused_by_name_and_lengths(client):
    insert(client, [steps(1), steps(2, 3, 4)], "q")
    with pytest.raises(ValueError, match=r"Column 0 has 1 steps in item \d+ but 3 in item \d+"):
        client.sample_batch("q", 2, timeout=10)


def reference(items, ragged):
    """A NumPy batch of int32 items, given as lists of values."""
    lengths = [len(item) for item in items]
    if ragged == "pack":
        return np.concatenate(items), np.cumsum([0, *lengths])
    padded = np.zeros((len(items), max(lengths)), np.int32)
    for row, item in zip(padded, items):
        row[: len(item)] = item
    return padded, np.arange(max(lengths)) < np.array(lengths)[:, None]


@pytest.fixture(scope="module")
def property_client():
    server = gear_reverb.Server([queue()])
    yield server.localhost_client()
    server.stop()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=9), min_size=1, max_size=6
    ),
    st.sampled_from(["pad", "pack"]),
)
def test_ragged_items_as_numpy_would_have_them(property_client, items, ragged):
    insert(property_client, [steps(*item) for item in items], "q")
    batch = property_client.sample_batch("q", len(items), ragged=ragged, timeout=10)
    data, extra = reference([np.array(item, np.int32) for item in items], ragged)
    np.testing.assert_array_equal(batch.data[0], data)
    assert batch.lengths.dtype == np.int32
    assert batch.lengths.tolist() == [len(item) for item in items]
    given, other = (
        (batch.mask, batch.cu_seqlens) if ragged == "pad" else (batch.cu_seqlens, batch.mask)
    )
    assert other is None
    assert given.dtype == (bool if ragged == "pad" else np.int32)
    np.testing.assert_array_equal(given, extra)


def test_columns_of_different_lengths_have_lengths_each(serve):
    client = serve(queue())
    with client.trajectory_writer(4) as writer:
        for n in (2, 3):
            for value in range(n):
                writer.append({"x": np.int32(value), "y": np.int32(value), "z": np.int32(value)})
            history = writer.history
            writer.create_item(
                "q", 1.0, {"x": history["x"][-n:], "y": history["y"][-1:], "z": history["z"][-1]}
            )
            writer.end_episode()
    batch = client.sample_batch("q", 2, ragged="pad", timeout=10)
    assert [None if x is None else x.tolist() for x in batch.lengths] == [[2, 3], [1, 1], None]
    assert batch.mask[0].tolist() == [[True, True, False], [True] * 3]
    assert batch.mask[2] is None
    assert batch.cu_seqlens is None


def test_weights_are_numpys(serve):
    table = make_table(sampler=selectors.Prioritized(0.7))
    client = serve(table)
    insert(client, [steps(i) for i in range(20)], priority=[0.5 + i for i in range(20)])
    betas = iter([0.0, 0.4, 1.0])
    with client.batch_sampler("t", 32, prefetch=0, beta=lambda: next(betas)) as sampler:
        for beta in (0.0, 0.4, 1.0):
            batch = next(sampler)
            expected = (batch.info.table_size * batch.info.probability) ** -beta
            np.testing.assert_allclose(batch.weights, expected / expected.max(), rtol=1e-6)
            assert batch.weights.dtype == np.float32


def test_what_is_over_the_limit_is_refused(client):
    big = [[{"x": np.zeros(1 << 18, np.float32)}]]
    insert(client, big)
    with pytest.raises(ValueError, match=r"max_bytes \(8000000\)"):
        client.sample_batch("t", 8, max_bytes=8_000_000)
    assert client.sample_batch("t", 8, max_bytes=8 << 20).data[0].nbytes == 8 << 20


def test_padding_is_refused_before_it_takes_memory(serve):
    client = serve(queue())
    long = [[{"x": np.zeros(1 << 16, np.uint8)}] * 60]
    short = [[{"x": np.zeros(1 << 16, np.uint8)}]]
    insert(client, long + short * 500, "q")
    with pytest.raises(ValueError, match="max_bytes"):
        client.sample_batch("q", 501, ragged="pad", max_bytes=1 << 30)


def test_unflattening_is_that_of_tree():
    point = collections.namedtuple("point", "x y")
    for structure in (0, [0], {"b": (1, [2]), "a": point(3, {"c": 4})}, (), {"x": {}}):
        leaves = [object() for _ in tree.flatten(structure)]
        assert compile_unflatten(structure)(leaves) == tree.unflatten_as(structure, leaves)
    with pytest.raises(ValueError, match="2 columns, but the items have 3"):
        compile_unflatten([0, 0])([1, 2, 3])
