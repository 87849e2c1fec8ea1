"""Errors about a column name the path of the field, whatever call it was given to."""

import numpy as np
import pytest
from tables import make_table

import gear_reverb
from gear_reverb import structured

DATE = np.datetime64("2020-01-01")
NOT_CARRIED = {
    "dtype": DATE,
    "object": np.array(object()),
    "surrogate": "\udcff",
}


@pytest.fixture
def client(serve):
    return serve()


def step(value):
    return {"a": 1, "obs": {"img": value}}


def stacked(value):
    return {"a": np.zeros(2), "obs": {"img": np.stack([value, value])}}


def structured_writer(client):
    blank = step(None) | {"a": None}
    pattern = structured.pattern_from_transform(blank, lambda s: s["obs"]["img"][-1])
    return client.structured_writer([structured.create_config(pattern, "t")])


CALLS = {
    "append": lambda client, value: client.trajectory_writer(1).append(step(value)),
    "partial": lambda client, value: client.trajectory_writer(1).append(
        step(value), partial_step=True
    ),
    "append_batch": lambda client, value: client.trajectory_writer(1).append_batch(stacked(value)),
    "structured": lambda client, value: structured_writer(client).append(step(value)),
    "writer": lambda client, value: client.writer(1).append(step(value)),
    "sequence": lambda client, value: client.writer(1).append_sequence(stacked(value)),
    "insert": lambda client, value: client.insert(step(value), {"t": 1.0}),
    "insert_with_timeout": lambda client, value: client.insert(step(value), {"t": 1.0}, timeout=9),
    "insert_batch": lambda client, value: client.insert_batch("t", stacked(value), 1.0),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("value", NOT_CARRIED.values(), ids=NOT_CARRIED)
def test_of_values_that_cannot_be_carried(client, call, value):
    with pytest.raises((TypeError, ValueError), match=r"\('obs', 'img'\)"):
        call(client, value)


@pytest.mark.parametrize("call", ["writer", "insert", "insert_with_timeout", "insert_batch"])
def test_of_none(client, call):
    if call == "insert_batch":
        with pytest.raises(ValueError, match=r"\('obs', 'img'\)"):
            client.insert_batch("t", {"a": np.zeros(2), "obs": {"img": None}}, 1.0)
        return
    with pytest.raises(ValueError, match=r"'obs', 'img'"):
        CALLS[call](client, None)


def test_of_a_dtype_that_changes(client):
    with client.writer(2) as writer:
        writer.append(step(1))
        with pytest.raises(ValueError, match=r"Tensor at \('obs', 'img'\) is float64"):
            writer.append(step(1.0))


def test_of_a_sequence_of_scalars(client):
    with client.writer(2) as writer:
        with pytest.raises(ValueError, match=r"scalar tensor at \('obs', 'img'\)"):
            writer.append_sequence({"a": np.zeros(1), "obs": {"img": 2}})


def test_of_a_column_given_twice_to_a_structured_writer(client):
    writer = structured_writer(client)
    writer.append(step(1), partial_step=True)
    with pytest.raises(gear_reverb.ReverbError, match=r"column 1 \(path=\('obs', 'img'\)\)"):
        writer.append({"a": None, "obs": {"img": 2}})


@pytest.fixture
def ragged(serve):
    """A client of tables, each of an item of one step and one of two."""
    spec = {"a": gear_reverb.TensorSpec((None,), np.int64)}
    signature = spec | {"obs": {"img": gear_reverb.TensorSpec((None,), np.int64)}}
    client = serve(
        make_table("t", signature=signature, max_times_sampled=1),
        make_table("plain", max_times_sampled=1),
        make_table("device", signature=signature),
    )
    with client.trajectory_writer(2) as writer:
        for table in ("t", "plain", "device"):
            for length in (1, 2):
                writer.append(step(1))
                history = writer.history
                item = {"a": history["a"][-1:], "obs": {"img": history["obs"]["img"][-length:]}}
                writer.create_item(table, 1.0, item)
    return client


def test_of_a_batch(ragged):
    with pytest.raises(ValueError, match=r"Column \('obs', 'img'\) has 1 steps"):
        ragged.sample_batch("t", 2)


def test_of_a_batch_samplers_batch(ragged):
    with ragged.batch_sampler("t", 2) as sampler:
        with pytest.raises(ValueError, match=r"Column \('obs', 'img'\) has 1 steps"):
            next(sampler)


def test_of_a_batch_without_a_signature_the_number_is_told(ragged):
    with pytest.raises(ValueError, match="Column 1 has"):
        ragged.sample_batch("plain", 2)


@pytest.mark.other_plane
def test_of_arrays_that_a_device_draws_into(ragged):
    sampler = ragged.fixed_batch_sampler("device", 2, device="cpu")
    with pytest.raises(RuntimeError, match=r"column \('obs', 'img'\)"):
        sampler.prepare()
