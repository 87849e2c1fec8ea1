"""The shared-memory data plane: its failures, and the ways around it."""

import os
import resource
import signal
import time

import numpy as np
import pytest
from processes import SECONDS, finish, start, stop, wait_until
from servers import VARIABLE, connect, end, sample, serve, shared_bytes
from tables import make_table

import gear_reverb

pytestmark = pytest.mark.other_plane


def test_a_killed_client_loses_its_leases(remote, client):
    process, port = remote
    client.insert([np.uint8(1)], {"q": 1.0})
    client.insert([np.zeros(80_000_000, np.uint8)], {"q": 1.0})
    # Both items leave the queue for this client, which looks at the first only.
    reader = start(f"""
        import time
        import gear_reverb as reverb
        client = reverb.Client("localhost:{port}")
        assert client.data_plane == "shared-memory"
        sampler = client._client.NewSampler("q", 2, 2, -1)
        sampler.GetNextTrajectory()
        print("holds", flush=True)
        time.sleep(1000)
    """)
    assert reader.stdout.readline() == "holds\n", reader.stderr.read()
    wait_until(lambda: client.server_info()["q"].current_size == 0)
    assert shared_bytes(process.pid) > 80_000_000, "the client may be reading"
    end(reader)
    wait_until(lambda: shared_bytes(process.pid) < 80_000_000)


@pytest.mark.parametrize(
    "call",
    ["client.sample_batch('q', 2)", "next(client.batch_sampler('q', 2, prefetch=1))"],
    ids=["batch", "batch sampler"],
)
def test_a_client_killed_in_a_gather_loses_its_leases(remote, client, call):
    process, port = remote
    for _ in range(10):  # Until it is stopped before the gather, which takes a moment, is done.
        for _ in range(2):
            client.insert([np.zeros(80_000_000, np.uint8)], {"q": 1.0})
        reader = start(f"""
            import gear_reverb as reverb
            client = reverb.Client("localhost:{port}")
            assert client.data_plane == "shared-memory"
            print("ready", flush=True)
            input()
            {call}
        """)
        assert reader.stdout.readline() == "ready\n", reader.stderr.read()
        reader.stdin.write("\n")
        reader.stdin.flush()
        wait_until(lambda: client.server_info()["q"].current_size == 0, pause=0)
        stop(reader)
        holds = shared_bytes(process.pid) > 80_000_000
        end(reader)
        wait_until(lambda: shared_bytes(process.pid) < 80_000_000)
        if holds:
            return
    pytest.fail("No gather was under way.")


def test_a_killed_writer_leaves_whole_items(remote, client):
    writer = start(f"""
        import numpy as np
        import gear_reverb as reverb
        writer = reverb.Client("localhost:{remote[1]}").trajectory_writer(1)
        i = 0
        while True:
            writer.append([np.full(3000, i, np.int64)])
            writer.create_item("t", 1.0, [writer.history[0][-1:]])
            i += 1
            if i == 2000:
                print("going", flush=True)
    """)
    assert writer.stdout.readline() == "going\n", writer.stderr.read()
    end(writer)
    for item in client.sample("t", 50, emit_timesteps=False):
        assert len(set(item.data[0].flat)) == 1
    client.insert([1], {"u": 1.0})
    assert sample(client, "u").data[0][0] == 1


def test_a_killed_server_is_an_error_and_no_hang(remote, client, impatient):
    process, _ = remote
    client.insert([1], {"t": 1.0})
    writer = client.trajectory_writer(1)
    writer.append([1])
    writer.create_item("t", 1.0, [writer.history[0][-1:]])
    writer.flush()
    end(process)
    started = time.monotonic()
    with pytest.raises(gear_reverb.ReverbError):
        next(client.sample("t"))
    with pytest.raises(gear_reverb.ReverbError):
        client.update_priorities("t", [1], [1.0])
    with pytest.raises(gear_reverb.ReverbError):
        writer.append([1])
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
        writer.flush()
    assert time.monotonic() - started < SECONDS


def test_a_server_that_comes_back_shares_memory_again(remote, client):
    process, port = remote
    assert client.data_plane == "shared-memory"
    end(process)
    with serve(port=port):
        wait_until(lambda: client.data_plane == "shared-memory")
        client.insert([5], {"t": 1.0})
        assert sample(client).data[0][0] == 5


def has_ring():
    with open("/proc/self/maps") as maps:
        return "gear_reverb_ring" in maps.read()


def test_a_writer_shares_memory_again_with_a_server_that_comes_back(remote, client):
    process, port = remote
    writer = client.trajectory_writer(1)

    def write(value):
        writer.append([value])
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
        writer.flush()

    write(1)
    assert has_ring()
    end(process)
    wait_until(lambda: "data_plane" not in repr(client))
    with serve(port=port):
        write(2)
        assert has_ring()
        assert sample(client).data[0][0] == 2
    writer.close()


def test_a_stopped_server_tells_blocked_calls(remote, client, impatient):
    process, _ = remote
    blocked = start(f"""
        import gear_reverb as reverb
        try:
            next(reverb.Client("localhost:{remote[1]}").sample("t"))
        except reverb.ReverbError as error:
            print(type(error).__name__, flush=True)
    """)
    wait_until(lambda: client.server_info()["t"].waiting_samples == 1)
    process.send_signal(signal.SIGTERM)
    assert finish(blocked)[0] == 0
    process.wait(SECONDS)


def test_a_lost_server_does_not_tie_up_the_threads_of_a_writer(remote):
    process, port = remote
    writer = start(
        f"""
        import faulthandler, os, threading
        import gear_reverb as reverb
        faulthandler.dump_traceback_later({SECONDS // 2}, exit=True)
        client = reverb.Client("localhost:{port}")
        writer = client.trajectory_writer(1, validate_items=False)
        writer.append([1])
        cell = writer.history[0][-1]
        print("appended", flush=True)
        input()

        def look():
            while True:
                cell.numpy()

        threading.Thread(target=look, daemon=True).start()
        writer.create_item("t", 1.0, [writer.history[0][:]])
        print("created", flush=True)
        os._exit(0)
        """,
        **{VARIABLE: "shared-memory"},
    )
    assert writer.stdout.readline() == "appended\n"
    process.kill()
    process.wait(SECONDS)
    code, out, err = finish(writer, "\n")
    assert (code, out) == (0, "created\n"), err


# ---- what cannot be had ----


@pytest.mark.parametrize(
    ("more", "plane", "why"),
    [
        (0, "shared-memory", "A sampler goes over gRPC: socket failed"),  # Only this time.
        (1, "grpc", "is used over gRPC: the server could not share its memory"),
    ],
    ids=["no socket", "no segment"],
)
def test_a_client_without_descriptors_falls_back(remote, more, plane, why):
    process = start(
        f"""
        import os, resource
        import gear_reverb as reverb
        client = reverb.Client("localhost:{remote[1]}")
        client.insert([3], {{"t": 1.0}})
        assert client.data_plane == "shared-memory"
        for _ in range(10):
            fd = os.open(os.devnull, os.O_RDONLY)
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (fd + {more}, 4096))
        [[step]] = client.sample("t")
        print(step.data[0], client.data_plane, flush=True)
        """,
        GEAR_REVERB_DEBUG="1",
    )
    code, out, err = finish(process)
    assert (code, out) == (0, f"3 {plane}\n"), err
    assert why in err


def test_a_client_without_memory_for_a_ring_falls_back(remote, client):
    process = start(
        f"""
        import resource
        import gear_reverb as reverb
        client = reverb.Client("localhost:{remote[1]}")
        assert client.data_plane == "shared-memory"
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        client.insert([3], {{"t": 1.0}})
        print("inserted", flush=True)
        """,
        GEAR_REVERB_DEBUG="1",
    )
    code, out, err = finish(process)
    assert (code, out) == (0, "inserted\n"), err
    assert "A writer goes over gRPC: Cannot share memory" in err
    assert sample(client).data[0][0] == 3


def test_a_server_without_memory_to_share_is_used_over_grpc():
    limit = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (100_000, r.RLIM_INFINITY))"
    with serve(first=limit) as (_, port):
        client = gear_reverb.Client(f"localhost:{port}")
        client.insert([3], {"t": 1.0})
        assert [sample(client).data[0][0] for _ in range(2)] == [3, 3]
        assert client.data_plane == "grpc"


def test_a_server_too_busy_to_tell_is_used_over_grpc_for_now(remote):
    process, port = remote
    stop(process)
    told = start(
        f"""
        import gear_reverb as reverb
        reverb.Client("localhost:{port}").data_plane
        """,
        GEAR_REVERB_DEBUG="1",
    )
    code, _, err = finish(told)
    assert code == 0, err
    assert "is used over gRPC for now: Could not connect" in err


def descriptors(pid):
    return {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}


def test_a_server_without_descriptors_turns_clients_away(remote, monkeypatch):
    server, port = remote
    monkeypatch.setenv(VARIABLE, "grpc")  # So that no descriptor gets free a little later.
    inserter = gear_reverb.Client(f"localhost:{port}")
    inserter.insert([3], {"t": 1.0})
    reader = start(
        f"""
        import gear_reverb as reverb
        client = reverb.Client("localhost:{port}")
        print(client.data_plane, flush=True)
        input()
        [[step]] = client.sample("t")
        print(step.data[0])
        """,
        **{VARIABLE: "", "GEAR_REVERB_DEBUG": "1"},
    )
    assert reader.stdout.readline() == "shared-memory\n", reader.stderr.read()
    strangers = []
    while max(used := descriptors(server.pid)) >= len(used):  # Lower ones are free.
        strangers.append(connect(server))
        wait_until(lambda: len(descriptors(server.pid)) > len(used))  # noqa: B023
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (len(used), len(used)))
    code, out, err = finish(reader, "\n")
    assert (code, out) == (0, "3\n"), err
    assert "A sampler goes over gRPC" in err
    for stranger in strangers:
        stranger.close()


# ---- the variable ----


def test_grpc_can_be_forced(remote, monkeypatch):
    monkeypatch.setenv(VARIABLE, "grpc")
    client = gear_reverb.Client(f"localhost:{remote[1]}")
    client.insert([1], {"t": 1.0})
    assert client.data_plane == "grpc"
    assert repr(client).endswith("data_plane=grpc")


def test_a_server_told_grpc_offers_nothing_else(monkeypatch):
    with serve(**{VARIABLE: "grpc"}) as (_, port):
        told = start(
            f"""
            import gear_reverb as reverb
            print(reverb.Client("localhost:{port}").data_plane)
            """,
            GEAR_REVERB_DEBUG="1",
        )
        code, out, err = finish(told)
        assert (code, out) == (0, "grpc\n"), err
        assert "DEBUG" in err and "over gRPC: the server at" in err
        monkeypatch.setenv(VARIABLE, "shared-memory")
        with pytest.raises(gear_reverb.ReverbError, match=f"{VARIABLE}.*does not offer"):
            gear_reverb.Client(f"localhost:{port}").data_plane  # noqa: B018


def test_in_process_cannot_be_forced_upon_another_process(remote, monkeypatch):
    monkeypatch.setenv(VARIABLE, "in-process")
    client = gear_reverb.Client(f"localhost:{remote[1]}")
    with pytest.raises(gear_reverb.ReverbError, match=f"{VARIABLE}.*not in this process"):
        client.insert([1], {"t": 1.0})


def test_shared_memory_can_be_forced_within_a_process(serve, monkeypatch):
    address = serve(make_table()).server_address
    monkeypatch.setenv(VARIABLE, "shared-memory")
    client = gear_reverb.Client(address)
    client.insert([1], {"t": 1.0})
    assert client.data_plane == "shared-memory"
    assert sample(client).data[0][0] == 1


@pytest.mark.parametrize("value", ["rdma", "GRPC"])
def test_another_value_is_refused(remote, monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ValueError, match=f"{VARIABLE} is '{value}'"):
        gear_reverb.Client(f"localhost:{remote[1]}").data_plane  # noqa: B018
    with pytest.raises(ValueError, match=VARIABLE):
        gear_reverb.Server([make_table()])
