"""Arguments that programs written for older releases of Reverb still give."""


def test_the_signature_timeout_of_a_trajectory_writer(our_client):
    client = our_client.serve()
    with client.trajectory_writer(1, get_signature_timeout_ms=300_000) as writer:
        writer.append([3])
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
    assert client.values("t", 1) == [3]
