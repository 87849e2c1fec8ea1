"""The module structured_writer without TensorFlow, and what the writer hands to the core."""

import subprocess
import sys

import numpy as np
import pytest
from tables import make_table, sizes

import gear_reverb
from gear_reverb import TensorSpec, _patterns
from gear_reverb.cc import patterns_pb2

structured = gear_reverb.structured
STEP = {"a": None, "b": (None, None)}


class InternalWriter:
    """Records calls; `errors` maps a method's name to what it raises."""

    step_is_open = False

    def __init__(self):
        self.calls = []
        self.errors = {}

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, *args))
            if name in self.errors:
                raise self.errors[name]

        return call


@pytest.fixture
def internal():
    return InternalWriter()


@pytest.fixture
def writer(internal):
    return structured.StructuredWriter(internal)


def config(transform=lambda step: {"x": step["a"][-1]}, *conditions, table="t"):
    pattern = structured.pattern_from_transform(STEP, transform)
    return structured.create_config(pattern, table, conditions)


def test_steps_are_flattened_in_the_order_of_the_reference_step(writer, internal):
    for part in (False, True, False):
        writer.append({"b": (2, 3), "a": 1}, partial_step=part)
    assert internal.calls == [
        ("Append", [1, 2, 3]),
        ("AppendPartial", [1, 2, 3]),
        ("Append", [1, 2, 3]),
    ]


def test_structures_with_as_many_leaves_are_taken(writer, internal):
    writer.append({"a": 1, "b": (2, 3)})
    writer.append([4, 5, 6])
    writer.append({"a": np.float32(7), "b": (None, np.zeros(2))})
    assert [len(call[1]) for call in internal.calls] == [3, 3, 3]
    assert internal.calls[1] == ("Append", [4, 5, 6])
    with pytest.raises(ValueError, match="got 2 but wanted 3"):
        writer.append([1, 2])
    assert len(internal.calls) == 3


def test_errors_name_the_path(writer, internal):
    internal.errors["Append"] = ValueError("Wrong dtype provided for column 2. Got x.")
    with pytest.raises(ValueError, match=r"for column 2 \(path=\('b', 1\)\)\. Got x"):
        writer.append({"a": 1, "b": (2, 3)})


@pytest.mark.parametrize(("call", "name"), [("flush", "Flush"), ("end_episode", "EndEpisode")])
def test_deadlines(writer, internal, call, name):
    getattr(writer, call)(timeout_ms=None)
    getattr(writer, call)(3, 100)
    assert [(c[0], c[2]) for c in internal.calls] == [(name, None), (name, 100)]
    internal.errors[name] = gear_reverb.DeadlineExceededError("late")
    with pytest.raises(gear_reverb.DeadlineExceededError, match=r"0:00:00\.1"):
        getattr(writer, call)(timeout_ms=100)
    internal.errors[name] = RuntimeError("no server")
    with pytest.raises(RuntimeError, match="no server"):
        getattr(writer, call)(timeout_ms=100)


def test_configs_in_plain_terms():
    condition = structured.Condition
    pattern = {"x": ("a", slice(-5, -1, 2)), "y": ("a", -2)}
    step = structured.create_reference_step(STEP)
    built = structured.create_config(
        {key: step[column][index] for key, (column, index) in pattern.items()},
        "t",
        [condition.step_index() % 3 != 1, condition.is_end_episode()],
        structured.td_error(0.5, STEP, lambda step: step["b"][1]),
    )
    [compiled] = _patterns.compile_configs([built])
    assert compiled.nodes == [(0, 5, 2, 2, False), (0, 2, 1, 1, True)]
    assert compiled.conditions == [("step_index", 0, "mod_eq", 1, 3, True)]
    assert compiled.at_end_of_episode
    assert compiled.priority == ("td_error", 0.5, 2)


def test_signature_without_tensorflow(monkeypatch):
    monkeypatch.setenv("GEAR_REVERB_TENSORFLOW", "0")
    specs = {"a": TensorSpec([2], np.float32), "b": (TensorSpec([], "string"),) * 2}
    one = config(lambda step: {"x": step["a"][-3:], "y": [step["b"][1][-1]]})
    assert structured.infer_signature([one], specs) == {
        "x": TensorSpec([3, 2], np.float32, "x"),
        "y": [TensorSpec([], "string", "y/0")],
    }


def test_signature_of_arrays(monkeypatch):
    monkeypatch.setenv("GEAR_REVERB_TENSORFLOW", "0")
    arrays = {"a": np.zeros([2]), "b": (np.zeros([]), np.zeros([]))}
    assert structured.infer_signature([config()], arrays) == {"x": TensorSpec([2], np.float64, "x")}


def test_items_fit_the_inferred_signature(serve, monkeypatch):
    monkeypatch.setenv("GEAR_REVERB_TENSORFLOW", "0")
    specs = {"a": TensorSpec([2], np.float32), "b": (TensorSpec([], np.int64),) * 2}
    configs = [config(lambda step: {"x": step["a"][-2:], "y": step["b"][0][-1]})]
    signature = structured.infer_signature(configs, specs)
    client = serve(make_table(signature=signature))
    writer = client.structured_writer(configs)
    for i in range(3):
        writer.append({"a": np.full([2], i, np.float32), "b": (i, i)})
    writer.end_episode()
    [sample] = client.sample("t", emit_timesteps=False, unpack_as_table_signature=True)
    assert sample.data["x"].tolist() == [[0, 0], [1, 1]]
    assert sample.data["y"] == 1


def test_configs_for_several_tables(serve):
    client = serve(make_table("t"), make_table("u"))
    even = structured.Condition.step_index() % 2 == 0
    writer = client.structured_writer(
        iter([config(), config(lambda s: s["b"][0][-1], even, table="u")])
    )
    for i in range(5):
        writer.append({"a": i, "b": (i, None)})
    writer.flush()
    assert sizes(client) == {"t": 5, "u": 3}


def test_large_steps(serve):
    client = serve()
    writer = client.structured_writer([config(lambda step: {"x": step["a"][-2:]})])
    frames = np.random.default_rng(0).integers(0, 255, [4, 500, 500], np.uint8)
    for frame in frames:
        writer.append({"a": frame, "b": (None, None)})
    writer.end_episode()
    assert sizes(client) == {"t": 3}
    [sample] = client.sample("t", emit_timesteps=False)
    np.testing.assert_array_equal(sample.data[0], frames[:2])


def test_a_server_that_is_gone(serve, impatient):
    server = gear_reverb.Server([make_table()])
    writer = gear_reverb.Client(f"localhost:{server.port}").structured_writer([config()])
    writer.append({"a": 1, "b": (1, 1)})
    writer.flush()
    server.stop()
    with pytest.raises(gear_reverb.ReverbError):
        for _ in range(3):
            writer.append({"a": 1, "b": (1, 1)})
            writer.flush(timeout_ms=20_000)


def test_a_server_that_is_not_there_yet_is_what_the_first_item_meets(monkeypatch):
    monkeypatch.setenv("GEAR_REVERB_DATA_PLANE", "shared-memory")
    monkeypatch.setenv("GEAR_REVERB_CONNECT_TIMEOUT", "0.5")
    writer = gear_reverb.Client("localhost:1").structured_writer([config()])
    writer.append({"a": 1, "b": (1, 1)})
    with pytest.raises(gear_reverb.ReverbError, match="Gave up waiting for 1 unconfirmed"):
        writer.flush(timeout_ms=20_000)


def test_writers_are_flushed_when_the_program_ends(serve):
    client = serve(make_table())
    program = (
        "import sys, gear_reverb\n"
        "from gear_reverb import structured\n"
        "step = structured.create_reference_step(None)\n"
        "configs = [structured.create_config(step[-3:], 't')]\n"
        "writer = gear_reverb.Client(sys.argv[1]).structured_writer(configs)\n"
        "for i in range(7):\n"
        "    writer.append(i)\n"
    )
    address = client.server_address
    subprocess.run([sys.executable, "-c", program, address], check=True, timeout=60)
    assert sizes(client) == {"t": 5}


def test_only_nodes_make_a_pattern():
    with pytest.raises(TypeError):
        structured.create_config({"x": structured.create_reference_step(STEP)["a"]}, "t")
    with pytest.raises(ValueError, match="not a string"):
        structured.create_config({1: patterns_pb2.PatternNode(stop=-1)}, "t")


def test_the_dataset_needs_tensorflow_only_when_it_is_used():
    program = (
        "import sys\n"
        "import gear_reverb, gear_reverb.pattern_dataset\n"
        "assert gear_reverb.structured.Config and 'tensorflow' not in sys.modules\n"
        "sys.modules['tensorflow'] = None\n"
        "try:\n"
        "    from gear_reverb import PatternDataset\n"
        "except ImportError:\n"
        "    print('needs TensorFlow')\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert output.stdout.strip() == "needs TensorFlow"


def test_conditions_are_of_integers():
    left = structured.Condition.step_index()
    for condition in (lambda: left % None, lambda: left == None, lambda: left >= "1"):  # noqa: E711
        with pytest.raises(TypeError):
            condition()
