"""Arguments that end the process in Reverb are refused here. Needs no pair: Reverb is not asked."""

import pytest


@pytest.mark.parametrize("option", ["sampler", "remover", "rate_limiter"])
def test_a_table_without_it(our_lib, option):
    options = {
        "name": "t",
        "sampler": our_lib.selectors.Fifo(),
        "remover": our_lib.selectors.Fifo(),
        "max_size": 1,
        "rate_limiter": our_lib.rate_limiters.MinSize(1),
        option: None,
    }
    with pytest.raises((AttributeError, TypeError)):
        our_lib.Table(**options)


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 1, 0.0, 1.0),
        (-1.0, 1, 0.0, 1.0),
        (float("nan"), 1, 0.0, 1.0),
        (1.0, 0, 0.0, 1.0),
        (1.0, -1, 0.0, 1.0),
        (1.0, 1, 2.0, 1.0),
    ],
    ids=str,
)
def test_a_limiter_that_cannot_work(our_lib, arguments):
    with pytest.raises(ValueError):
        our_lib.table(rate_limiter=our_lib.rate_limiters.RateLimiter(*arguments))


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("question", ["can_sample", "can_insert"])
def test_asking_for_nothing(our_lib, question, number):
    with pytest.raises(ValueError):
        getattr(our_lib.table(), question)(number)


@pytest.mark.parametrize("exponent", [-1.0, float("nan"), float("inf")])
def test_exponents_that_cannot_be_weighed(our_lib, exponent):
    with pytest.raises(ValueError, match="exponent"):
        our_lib.table(sampler=our_lib.selectors.Prioritized(exponent))


def test_an_empty_column_beside_others(our_client):
    with our_client.serve().trajectory_writer(2) as writer:
        writer.append([1, 2])
        with pytest.raises(ValueError):
            writer.create_item("t", 1.0, [writer.history[0][:], writer.history[1][[]]])


def test_an_infinite_priority(our_client):
    client = our_client.serve()
    with pytest.raises(ValueError, match="priority"):
        client.insert([1], {"t": float("inf")})
    client.insert([1], {"t": 1.0})
    assert client.size("t") == 1
