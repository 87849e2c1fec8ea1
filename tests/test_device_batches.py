"""Batches gathered on a device: the kernels' twin gives what the sampler gives without one."""

import ml_dtypes
import numpy as np
import pytest
from batches import insert, steps
from devices import DEVICE, ON_DEVICE
from tables import make_table

import gear_reverb
from gear_reverb import selectors


def assert_same(left, right):
    if isinstance(left, (list, tuple)):
        assert len(left) == len(right)
        for a, b in zip(left, right):
            assert_same(a, b)
    elif isinstance(left, dict):
        assert_same([left[key] for key in sorted(left)], [right[key] for key in sorted(right)])
    elif left is None:
        assert right is None
    else:
        assert left.dtype == right.dtype and left.shape == right.shape
        np.testing.assert_array_equal(left, right)


def assert_same_batches(one, other, count=4):
    for _, a, b in zip(range(count), one, other):
        for name in ("key", "probability", "table_size", "priority"):
            assert_same(getattr(a.info, name), getattr(b.info, name))
        assert_same(a.data, b.data)
        for name in ("lengths", "mask", "cu_seqlens", "weights"):
            assert_same(getattr(a, name, None), getattr(b, name, None))


def random_items(rng, count, equal):
    """Columns of several sizes and dtypes, text among them."""

    def step():
        return {
            "bytes": rng.integers(0, 256, (3, 5), np.uint8),
            "flag": np.bool_(rng.integers(2)),
            "float": rng.standard_normal(11, np.float32),
            "half": rng.standard_normal(3).astype(ml_dtypes.bfloat16),
            "key": rng.integers(0, 2**63, 2, np.int64),
            "none": np.zeros((0, 4), np.float32),
            "text": f"step {rng.integers(100)}",
        }

    return [[step() for _ in range(7 if equal else rng.integers(1, 20))] for _ in range(count)]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("ragged", ["error", "pad", "pack"])
def test_the_twin_gives_the_same_batches(serve, ragged, prefetch):
    client = serve(make_table(sampler=selectors.Prioritized(1.0)))
    rng = np.random.default_rng(5)
    items = random_items(rng, 30, equal=ragged == "error")
    insert(client, items, priority=list(rng.uniform(1, 9, 30)))
    options = {"ragged": ragged, "prefetch": prefetch, "seed": 3, "beta": 0.5}
    with (
        client.batch_sampler("t", 16, **options) as plain,
        client.batch_sampler("t", 16, **ON_DEVICE, **options) as twin,
    ):
        assert_same_batches(plain, twin)
        stats = twin.device_stats()
        assert stats["device"] == DEVICE and stats["batches"] >= 4
        assert stats["choices"][0]["way"] == ("twin" if DEVICE == "cpu" else "lanes")
        assert plain.device_stats() is None


@pytest.mark.parametrize("ragged", ["pad", "pack"])
def test_columns_of_different_lengths_have_their_own_sides(serve, ragged):
    client = serve(make_table())
    with client.trajectory_writer(num_keep_alive_refs=8) as writer:
        for i in range(6):
            for j in range(8):
                writer.append({"a": np.float32(10 * i + j), "b": np.int32([i, j])})
            history = writer.history
            columns = {
                "a": history["a"][-1 - i :],
                "b": history["b"][-3:],
                "last": history["a"][-1],
            }
            writer.create_item("t", 1.0, columns)
            writer.end_episode()
    options = {"ragged": ragged, "seed": 1}
    with (
        client.batch_sampler("t", 5, **options) as plain,
        client.batch_sampler("t", 5, **ON_DEVICE, **options) as twin,
    ):
        assert_same_batches(plain, twin)


def test_the_twin_works_over_every_plane(client):
    insert(client, [steps(1, 2, 3), steps(4, 5, 6)])
    with client.batch_sampler("t", 4, **ON_DEVICE) as sampler:
        batch = next(sampler)
    assert batch.data[0].tolist() == [[1, 2, 3]] * 4
    batch.data[0][:] = 0  # Writable.


def test_casts(serve):
    client = serve(make_table(signature=None))
    rng = np.random.default_rng(0)
    floats = (rng.standard_normal((4, 9)) * 10.0 ** rng.integers(-9, 9, (4, 9))).astype(np.float32)
    pixels = rng.integers(0, 256, (4, 7), np.uint8)
    insert(client, [[{"f": floats[i], "u": pixels[i], "x": np.int32(i)} for i in range(4)]])

    def draw(**cast):
        with client.batch_sampler("t", 2, **ON_DEVICE, cast=cast) as sampler:
            return next(sampler).data

    with np.errstate(over="ignore"):
        halves = floats.astype(np.float16)
    plain = draw()
    np.testing.assert_array_equal(plain[0][1], floats)
    cast = draw(float32="float16", uint8="float16")
    assert cast[0].dtype == np.float16 and cast[1].dtype == np.float16
    np.testing.assert_array_equal(cast[0][1], halves)
    np.testing.assert_allclose(cast[1][1], pixels / 255, atol=2**-11)
    assert cast[1][1].max() <= 1
    np.testing.assert_array_equal(cast[2][1].ravel(), range(4))
    cast = draw(float32="bfloat16")
    assert cast[0].dtype == ml_dtypes.bfloat16 and cast[1].dtype == np.uint8
    np.testing.assert_array_equal(cast[0][1], floats.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    "options, text",
    [
        ({"device": "tpu:0"}, "'cpu' or 'cuda:N', but is 'tpu:0'"),
        ({"device": "cuda:x", "out": "torch"}, "'cuda:x'"),
        ({"cast": {"float32": "float16"}}, "needs a device"),
        ({**ON_DEVICE, "cast": {"int32": "float16"}}, "int32 cannot be cast"),
        ({**ON_DEVICE, "cast": {"float32": "float64"}}, "'float64'"),
    ],
)
def test_wrong_arguments(client, options, text):
    with pytest.raises(ValueError, match=text):
        client.batch_sampler("t", 4, **options)


def test_max_bytes_holds_after_casts(client):
    insert(client, [[{"u": np.zeros(1000, np.uint8)}]])
    options = {**ON_DEVICE, "max_bytes": 1500}
    with client.batch_sampler("t", 1, **options) as sampler:
        next(sampler)
    with client.batch_sampler("t", 1, cast={"uint8": "float16"}, **options) as sampler:
        with pytest.raises(ValueError, match="2000 bytes once cast"):
            next(sampler)


@pytest.mark.skipif(gear_reverb.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_with_the_reason(client):
    insert(client, [steps(1)])
    reason = gear_reverb.cuda.why_not()
    assert reason
    with pytest.raises(RuntimeError, match="'cuda:0' cannot be used") as refused:
        client.batch_sampler("t", 1, device="cuda:0", out="torch")
    assert reason in str(refused.value)
    with client.batch_sampler("t", 1, **ON_DEVICE) as sampler:
        assert next(sampler).data[0].tolist() == [[1]]
