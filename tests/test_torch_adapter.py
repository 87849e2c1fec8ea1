"""gear_reverb.torch: batches as tensors, in this process and in a DataLoader's workers."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from adapters import (  # noqa: E402
    ROOT,
    SECONDS,
    STEPS,
    assert_numbered,
    insert_numbered,
    insert_ragged,
    numbered_table,
    run,
)
from tables import make_table  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import gear_reverb  # noqa: E402
from gear_reverb import torch as reverb_torch  # noqa: E402

FORK = """
    import sys, threading
    import gear_reverb, gear_reverb.torch
    from torch.utils.data import DataLoader

    address, used_before = sys.argv[1], sys.argv[2] == "used"
    if used_before:
        gear_reverb.Client(address).server_info()
    dataset = gear_reverb.torch.ReplayDataset(address, "t", 4, timeout=60, max_batches=6)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    print(sum(len(batch.info.key) for batch in loader), "items")
"""


@pytest.fixture
def client(serve):
    client = serve(numbered_table())
    insert_numbered(client)
    return client


def dataset(client, *args, **options):
    args = args or ("t", 4)
    return reverb_torch.ReplayDataset(
        client.server_address, *args, **{"timeout": 60, "max_batches": 5, **options}
    )


def loaded(dataset, **options):
    timeout = SECONDS if options.get("num_workers") else 0
    return list(DataLoader(dataset, batch_size=None, timeout=timeout, **options))


def test_batches_are_tensors_in_the_signatures_structure(client):
    batches = list(dataset(client))
    assert len(batches) == 5
    for batch in batches:
        assert_numbered(batch)
        assert set(batch) == {"info", "data"}
        assert batch["data"] is batch.data
        assert batch.data["x"].shape == (4, STEPS, 2)
        assert all(isinstance(field, torch.Tensor) for field in batch.info)
        assert batch.info.key.dtype == torch.uint64


def test_keys_update_priorities(client):
    [batch] = dataset(client, max_batches=1)
    client.update_priorities("t", batch.info.key.numpy(), np.full(4, 99.0))
    drawn = {
        key: priority
        for batch in dataset(client, max_batches=50)
        for key, priority in zip(batch.info.key.tolist(), batch.info.priority.tolist())
    }
    assert all(drawn[key] == 99.0 for key in batch.info.key.tolist())


def test_an_iteration_starts_anew(client):
    batches = dataset(client, max_batches=2)
    assert [len(list(batches)) for _ in range(2)] == [2, 2]


def test_no_batches_need_no_server():
    assert list(reverb_torch.ReplayDataset("localhost:1", "t", 4, max_batches=0)) == []


def test_beta_adds_weights(client):
    [batch] = dataset(client, beta=0.5, max_batches=1)
    assert batch.weights.dtype == torch.float32 and batch.weights.max() == 1


@pytest.mark.parametrize("ragged", ["pad", "pack"])
def test_ragged_items(serve, ragged):
    client = serve(make_table(max_times_sampled=1))  # Every item once.
    insert_ragged(client, [2, 5, 3])
    [batch] = dataset(client, "t", 3, ragged=ragged, max_batches=1)
    assert sorted(batch.lengths.tolist()) == [2, 3, 5]
    [x] = batch.data
    if ragged == "pad":
        assert x.shape == (3, 5) and batch.mask.dtype == torch.bool
        assert batch.mask.sum(dim=1).tolist() == batch.lengths.tolist()
    else:
        assert x.shape == (10,) and batch.cu_seqlens[-1] == 10
        assert x.tolist() == [n for n in batch.lengths.tolist() for _ in range(n)]


def test_padding_to_one_length(serve):
    client = serve(make_table(max_times_sampled=1))
    insert_ragged(client, [2, 5, 3])
    [batch] = dataset(client, "t", 3, ragged="pad", pad_to=8, max_batches=1)
    assert batch.data[0].shape == batch.mask.shape == (3, 8)


def test_equal_seeds_draw_equal_batches(client):
    keys = [[batch.info.key.tolist() for batch in dataset(client, seed=7)] for _ in range(2)]
    assert keys[0] == keys[1]


def test_every_worker_has_a_seed_of_its_own():
    seeds = [reverb_torch._seed(7, index, 4) for index in range(4)]
    assert len(set(seeds)) == 4 and all(0 <= seed < 2**64 for seed in seeds)
    assert reverb_torch._seed(7, 0, 1) == 7 and reverb_torch._seed(None, 1, 4) is None


def test_text_stays_numpy(serve):
    client = serve()
    client.insert(["text"], {"t": 1.0})
    [batch] = loaded(dataset(client, "t", 1, max_batches=1))
    assert isinstance(batch.data[0], np.ndarray) and batch.data[0].item() == b"text"


def test_what_is_wrong_is_named():
    for field in ("batch_size", "max_batches"):
        with pytest.raises(ValueError, match=field):
            reverb_torch.ReplayDataset("localhost:1", "t", **{"batch_size": 1, field: -1})


def test_the_samplers_errors_come_through(client, serve):
    with pytest.raises(ValueError, match="ragged"):
        next(iter(dataset(client, ragged="fold")))
    with pytest.raises(gear_reverb.DeadlineExceededError):
        next(iter(dataset(serve(), timeout=0.05)))


def test_a_batch_has_no_other_attributes(client):
    [batch] = dataset(client, max_batches=1)
    with pytest.raises(AttributeError, match="weights"):
        _ = batch.weights


def test_pickles_without_a_client(client):
    copy = pickle.loads(pickle.dumps(dataset(client, max_batches=3)))
    assert len(list(copy)) == 3


def test_a_loader_without_workers_keeps_batches_whole(client):
    for batch in loaded(dataset(client, beta=0.5)):
        assert isinstance(batch, reverb_torch.Batch)
        assert_numbered(batch)
        assert batch.weights.shape == (4,)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_share_the_batches(client, method):
    batches = loaded(dataset(client, beta=0.5), num_workers=2, multiprocessing_context=method)
    assert len(batches) == 5
    for batch in batches:
        assert isinstance(batch, reverb_torch.Batch)
        assert_numbered(batch)
        assert batch.weights.shape == (4,)


def test_a_forked_worker_works_if_nothing_was_used_before(client):
    status, output = run(FORK, client.server_address, "unused")
    assert (status, output.splitlines()[-1:]) == (0, ["24 items"]), output


def test_a_forked_worker_says_why_it_cannot_work(client):
    status, output = run(FORK, client.server_address, "used")
    assert status == 1 and "ReverbError" in output and "'spawn'" in output, output


def test_pinning(client):
    if torch.cuda.is_available():
        [batch] = dataset(client, pin_memory=True, max_batches=1)
        assert batch.data["x"].is_pinned() and batch.info.key.is_pinned()
        assert_numbered(batch)
    else:
        with pytest.raises(RuntimeError):
            next(iter(dataset(client, pin_memory=True)))


def test_workers_do_not_pin(client):
    with pytest.raises(ValueError, match="pin_memory"):
        loaded(
            dataset(client, pin_memory=True), num_workers=1, multiprocessing_context="forkserver"
        )


def test_the_package_does_not_import_torch():
    assert run("import sys, gear_reverb\nassert 'torch' not in sys.modules")[0] == 0


def test_example():
    status, output = run(str(ROOT / "examples" / "torch_dqn" / "main.py"))
    assert status == 0 and output.splitlines()[-1].startswith("PASS"), output
