"""`infer_signature`, `unpack_pattern`, and the module's public names."""

import collections
import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Pair = collections.namedtuple("Pair", ["first", "second"])

SHAPES = [(), (3,), (2, 2), (None,), (None, 4), (5, None)]
DTYPES = [np.float32, np.float64, np.int64, np.bool_, np.uint8, "string"]


def spec(lib, shape, dtype):
    if dtype != "string":
        return lib.spec(shape, dtype)
    return lib.spec(shape, "string" if lib.is_ours else __import__("tensorflow").string)


def fields(signature_spec):
    """Shape, dtype and name of a leaf, the same for both kinds of specs."""
    dtype = getattr(signature_spec.dtype, "as_numpy_dtype", signature_spec.dtype)
    return tuple(signature_spec.shape), np.dtype(dtype).name, signature_spec.name


def leaves(nest):
    """Leaves by path; containers as their types."""
    if isinstance(nest, dict):
        return {key: leaves(nest[key]) for key in sorted(nest)}
    if isinstance(nest, (list, tuple)):
        return [type(nest).__name__, [leaves(child) for child in nest]]
    return fields(nest)


@st.composite
def node_lists(draw):
    """Per leaf of a pattern: column, and for each of the configs start, stop and step."""
    num_configs = draw(st.integers(1, 3))
    result = []
    for _ in range(draw(st.integers(1, 4))):
        column = draw(st.integers(0, 3))
        squeeze = draw(st.booleans())
        slices = []
        for _ in range(num_configs):
            start = -draw(st.integers(1, 5))
            stop = draw(st.sampled_from([None, *range(start + 1, 1)]))
            step = draw(st.sampled_from([None, 1, 2, 3]))
            mixed = draw(st.integers(0, 9)) == 0  # Now and then a column that does not fit.
            slices.append((squeeze != mixed, start, stop, step, draw(st.integers(0, 9)) == 0))
        result.append((column, slices))
    return result


def outcome(lib, columns, node_list, structure):
    structured = lib.structured
    step_spec = [spec(lib, shape, dtype) for shape, dtype in columns]
    step = structured.create_reference_step(step_spec)
    configs = []
    for index in range(len(node_list[0][1])):
        nodes = []
        for column, slices in node_list:
            squeeze, start, stop, by, other = slices[index]
            source = step[(column + other) % 4]
            nodes.append(source[start] if squeeze else source[start:stop:by])
        configs.append(structured.create_config(structure(nodes), "t"))
    try:
        return leaves(structured.infer_signature(configs, step_spec))
    except ValueError as error:
        return str(error).split(" at ")[0]


STRUCTURES = {
    "list": list,
    "tuple": tuple,
    "dict": lambda nodes: {f"k{i}": node for i, node in enumerate(nodes)},
    "nested": lambda nodes: {"x": {"y": [nodes[0], tuple(nodes[1:])]}},
    "named_tuple": lambda nodes: Pair(nodes[0], {"rest": nodes[1:]}),
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_all_infer_the_same_signature(libs, structure):
    @settings(
        max_examples=100,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(
            st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES)), min_size=4, max_size=4
        ),
        node_lists(),
    )
    def check(columns, node_list):
        first, *others = [outcome(lib, columns, node_list, STRUCTURES[structure]) for lib in libs]
        assert all(other == first for other in others)

    check()


def test_shapes_and_names(lib):
    structured = lib.structured
    step_spec = {"a": lib.spec([3], np.float32), "b": lib.spec([], np.int64)}
    pattern = structured.pattern_from_transform(
        step_spec, lambda step: {"x": [step["a"][-3:-1], step["b"][-1]], "y": step["a"][-2]}
    )
    longer = structured.pattern_from_transform(
        step_spec, lambda step: {"x": [step["a"][-5:], step["b"][-2]], "y": step["a"][-1]}
    )
    configs = [structured.create_config(each, "t") for each in (pattern, longer)]
    one = structured.infer_signature(configs[:1], step_spec)
    assert fields(one["x"][0]) == ((2, 3), "float32", "x/0")
    assert fields(one["x"][1]) == ((), "int64", "x/1")
    assert fields(one["y"]) == ((3,), "float32", "y")
    assert fields(structured.infer_signature(configs, step_spec)["x"][0])[0] == (None, 3)


def test_errors(lib):
    structured = lib.structured
    step_spec = {"a": lib.spec([3], np.float32), "b": lib.spec([], np.int64)}

    def config(transform, table="t"):
        pattern = structured.pattern_from_transform(step_spec, transform)
        return structured.create_config(pattern, table)

    a = config(lambda step: {"x": step["a"][-1]})
    for other, reason in [
        (config(lambda step: {"y": step["a"][-1]}), "pattern_structure"),
        (config(lambda step: {"x": step["a"][-1]}, "u"), "same table.* t, u"),
        (config(lambda step: {"x": step["b"][-1]}), r"dtypes at \('x',\)"),
        (config(lambda step: {"x": step["a"][-2:]}), r"incompatible shapes at \('x',\)"),
    ]:
        with pytest.raises(ValueError, match=reason):
            structured.infer_signature([a, other], step_spec)
    with pytest.raises(ValueError, match="At least one config"):
        structured.infer_signature([], step_spec)
    a.flat[0].flat_source_index = 9
    with pytest.raises(IndexError):
        structured.infer_signature([a], step_spec)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_pattern_is_unpacked_as_it_was(lib, structure):
    structured = lib.structured
    step = structured.create_reference_step([None] * 4)
    pattern = STRUCTURES[structure]([step[0][-1], step[1][-3:], step[3][-5:-1:2]])
    unpacked = structured.unpack_pattern(structured.create_config(pattern, "t"))

    def texts(nest):
        if isinstance(nest, dict):
            return {key: texts(nest[key]) for key in sorted(nest)}
        if isinstance(nest, (list, tuple)):
            return [type(nest).__name__, [texts(child) for child in nest]]
        return nest.SerializeToString(deterministic=True)

    assert texts(unpacked) == texts(pattern)


def test_configs_have_the_same_bytes(libs):
    def config(lib):
        structured = lib.structured
        step = structured.create_reference_step({"a": None, "b": [None, None]})
        return structured.create_config(
            {"x": step["a"][-3:-1], "y": (step["b"][1][-1],)},
            "table",
            [structured.Condition.step_index() % 3 == 1, structured.Condition.is_end_episode()],
            structured.td_error(0.5, {"a": None, "b": [None, None]}, lambda step: step["b"][0]),
        ).SerializeToString(deterministic=True)

    first, *others = map(config, libs)
    assert all(other == first for other in others)


def parameters(function):
    """Name, kind and default of each parameter. Ours may have more, by keyword only."""
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def test_public_names_and_their_signatures(libs):
    ours = libs[0].structured
    for lib in libs[1:]:
        theirs = lib.structured
        assert lib.structured_writer is theirs
        assert libs[0].structured_writer is ours
        names = [
            name
            for name, value in vars(theirs).items()
            if not name.startswith("_")
            and not inspect.ismodule(value)
            and getattr(value, "__module__", "") != "typing"
        ]
        assert len(names) >= 12
        for name in [*names, "Pattern", "PatternTransform"]:
            assert hasattr(ours, name), name
            if inspect.isfunction(getattr(theirs, name)):
                assert parameters(getattr(ours, name)) == parameters(getattr(theirs, name)), name
        for cls in ("StructuredWriter", "Condition"):
            for name, member in vars(getattr(theirs, cls)).items():
                if name.startswith("_") and name != "__init__":
                    continue
                ours_of = inspect.getattr_static(getattr(ours, cls), name)
                if callable(getattr(member, "__func__", member)):
                    assert parameters(ours_of) == parameters(member), (cls, name)
