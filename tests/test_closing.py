"""What is closed while another thread uses it."""

import threading

import gear_reverb


def test_closing_a_sampler_ends_a_call_of_another_thread(client):
    sampler = client._client.NewSampler("q", -1, 1, -1)
    errors = []

    def sample():
        try:
            sampler.GetNextTrajectory()
        except gear_reverb.ReverbError as error:
            errors.append(str(error))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    while client.server_info()["q"].waiting_samples == 0:
        pass
    sampler.Close()
    thread.join(20)
    assert errors == ["The sampler has been closed."]
