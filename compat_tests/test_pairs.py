"""Which pairs of client and server this run covers."""

import importlib.util

import pytest

ALL = {"ours_ours", "reverb_reverb", "reverb_ours", "ours_reverb"}


def test_every_pair_is_collected(request):
    conftest = request.config.pluginmanager.get_plugin(str(request.path.parent / "conftest.py"))
    if importlib.util.find_spec("reverb") is None:
        assert set(conftest.PAIRS) == {"ours_ours"}
        pytest.skip("dm-reverb is not installed: 3 of the 4 pairs of client and server do not run")
    assert set(conftest.PAIRS) == ALL


def test_a_pair_is_what_its_name_says(pair, request):
    client, server = request.node.callspec.params["pair"].split("_")
    names = {"ours": "gear_reverb", "reverb": "reverb"}
    assert pair.client_lib.Client.__module__.split(".")[0] == names[client]
    assert pair.server_lib.Table.__module__.split(".")[0] == names[server]
    pair.serve().insert([1], {"t": 1.0})
