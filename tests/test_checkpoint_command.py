"""`gear-reverb checkpoint`, as a user sees it. compat_tests move its output to dm-reverb."""

import pathlib

import pytest

import gear_reverb
from gear_reverb import _checkpoint_command
from gear_reverb.platform.checkpointers_lib import DefaultCheckpointer


@pytest.fixture
def stored(tmp_path):
    """A checkpoint of a table `t` with three items."""
    table = gear_reverb.Table.queue("t", 5)
    server = gear_reverb.Server([table], checkpointer=DefaultCheckpointer(tmp_path / "own"))
    client = server.localhost_client()
    for i in range(3):
        client.insert([i], {"t": 1.0})
    path = client.checkpoint()
    server.stop()
    return pathlib.Path(path)


def restore(path):
    server = gear_reverb.Server(
        [gear_reverb.Table.queue("t", 5)], checkpointer=DefaultCheckpointer(path)
    )
    samples = server.localhost_client().sample("t", 3, emit_timesteps=False)
    values = [sample.data[0].item() for sample in samples]
    server.stop()
    return values


@pytest.mark.parametrize("parent", [False, True], ids=["checkpoint", "parent"])
def test_export_writes_a_checkpoint_and_prints_its_path(stored, tmp_path, capsys, parent):
    path = stored.parent if parent else stored
    assert _checkpoint_command.main(["export", str(path), str(tmp_path / "new" / "out")]) == 0
    exported = pathlib.Path(capsys.readouterr().out.strip())
    assert exported.parent == tmp_path / "new" / "out"
    assert sorted(file.name for file in exported.iterdir()) == [
        "DONE",
        "chunks.tfrecord",
        "items.tfrecord",
        "tables.tfrecord",
    ]
    assert restore(exported) == restore(exported.parent) == [0, 1, 2]


def test_a_damaged_export_is_refused_with_file_and_record(stored, tmp_path):
    _checkpoint_command.main(["export", str(stored), str(tmp_path / "out")])
    [exported] = (tmp_path / "out").iterdir()
    items = exported / "items.tfrecord"
    items.write_bytes(items.read_bytes()[:-5])
    with pytest.raises(gear_reverb.ReverbError, match=r"items.tfrecord: record \d at byte"):
        restore(exported)


def test_nothing_to_export_is_an_error(tmp_path, capsys):
    assert _checkpoint_command.main(["export", str(tmp_path), str(tmp_path / "out")]) == 1
    assert "There is no checkpoint in" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("argv", [[], ["import"], ["export", "a"]], ids=str)
def test_other_arguments_are_explained(argv, capsys):
    with pytest.raises(SystemExit) as exit:
        _checkpoint_command.main(argv)
    assert exit.value.code == 2
    assert "usage: gear-reverb checkpoint" in capsys.readouterr().err
