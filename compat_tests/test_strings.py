"""Strings go in as bytes or text, and come out as object arrays of bytes."""

import numpy as np
import pytest

CASES = {
    "str": ("text", b"text"),
    "bytes": (b"bytes", b"bytes"),
    "empty": (b"", b""),
    "fixed_width_text": (np.array(["a", "bb"]), [b"a", b"bb"]),
    "fixed_width_bytes": (np.array([b"a", b"bb"]), [b"a", b"bb"]),
    "object_of_bytes": (np.array([b"a\0b", b"", b"\xff"], object), [b"a\0b", b"", b"\xff"]),
    "object_of_text": (np.array(["a", "b\u00e9"], object), [b"a", "b\u00e9".encode()]),
    "matrix": (np.array([[b"a", b"bb"], [b"", b"d"]], object), [[b"a", b"bb"], [b"", b"d"]]),
    "long": (b"x" * 100_000, b"x" * 100_000),
    "none_at_all": (np.zeros([0], object), []),
}


@pytest.mark.parametrize("case", CASES)
def test_round_trip(pair, case):
    value, expected = CASES[case]
    client = pair.serve()
    client.insert([value], {"t": 1.0})
    [[step]] = client.sample("t")
    assert step.data[0].dtype == object
    assert step.data[0].tolist() == expected


def test_a_column_of_strings(pair):
    client = pair.serve()
    with client.trajectory_writer(4) as writer:
        for i in range(4):
            writer.append({"name": f"step {i}", "value": i})
        writer.create_item(
            "t", 1.0, {"all": writer.history["name"][:], "last": writer.history["name"][-1]}
        )
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [f"step {i}".encode() for i in range(4)]
    assert sample.data[1].tolist() == b"step 3"


def test_a_slice_over_chunks_of_strings(pair):
    client = pair.serve()
    with client.trajectory_writer(6) as writer:
        writer.configure((0,), num_keep_alive_refs=6, max_chunk_length=2)
        for i in range(6):
            writer.append([b"x" * i])
        writer.create_item("t", 1.0, [writer.history[0][1:]])
    [sample] = client.sample("t", emit_timesteps=False)
    assert sample.data[0].tolist() == [b"x" * i for i in range(1, 6)]
