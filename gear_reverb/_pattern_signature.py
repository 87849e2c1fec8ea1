"""The signature of a table, from the configs that make its items and the spec of their steps."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import tree

from gear_reverb import _dtypes, _signature, reverb_types
from gear_reverb.cc import patterns_pb2
from gear_reverb.tensor_spec import TensorSpec


def infer_signature(
    configs: Sequence[patterns_pb2.StructuredWriterConfig],
    step_spec: reverb_types.SpecNest,
) -> reverb_types.SpecNest:
    """The signature of the table that the configs make items for.

    The time axis of a column comes first, with size None where configs differ in it. As in Reverb,
    a slice with a step counts `(stop - start) // step` steps, one too few where the division is
    not exact.

    Args:
      configs: All configs of one table.
      step_spec: Nest of specs (or arrays) of the steps to be appended.

    Returns:
      Nest of specs in the structure of the patterns, named by their paths: `tf.TensorSpec` where
      TensorFlow is installed, else `gear_reverb.TensorSpec`.

    Raises:
      ValueError: If there are no configs, or they differ in table, structure, or in a column's
        dtype or shape of steps.
      IndexError: If a pattern refers to a column that `step_spec` does not have.
    """
    specs = infer_specs(configs, step_spec, lambda start, stop, step: (stop - start) // step)
    return tree.map_structure(_signature.as_tensorflow, specs)


def infer_specs(
    configs: Sequence[patterns_pb2.StructuredWriterConfig],
    step_spec: reverb_types.SpecNest,
    length: Callable[[int, int, int], int] = lambda a, b, step: math.ceil((b - a) / step),
) -> Any:
    """As `infer_signature`, with our `TensorSpec`s; `length` is a slice's number of steps."""
    if not configs:
        raise ValueError("At least one config must be provided.")
    first = configs[0]
    if any(config.pattern_structure != first.pattern_structure for config in configs):
        raise ValueError("All configs must have exactly the same pattern_structure.")
    if any(config.table != first.table for config in configs):
        tables = ", ".join(sorted({config.table for config in configs}))
        raise ValueError(
            f"All configs must target the same table but provided configs included {tables}."
        )
    steps = tree.flatten(step_spec)
    return tree.map_structure_with_path(
        lambda path, *nodes: _infer_column(path, nodes, steps, length),
        *(unpack_pattern(config) for config in configs),
    )


def unpack_pattern(config: patterns_pb2.StructuredWriterConfig) -> Any:
    """The config's pattern, a nest of `PatternNode`; a flat list if the structure is not known."""
    if not config.HasField("pattern_structure"):
        return list(config.flat)
    structure = _signature.decode_structure(config.pattern_structure)
    return tree.unflatten_as(structure, list(config.flat))


def _infer_column(path: tuple, nodes: Sequence, steps: list, length: Callable) -> TensorSpec:
    for node in nodes:
        if not 0 <= node.flat_source_index < len(steps):
            raise IndexError(
                f"Pattern refers to column {node.flat_source_index} at {path}, but steps have "
                f"{len(steps)} columns."
            )
    sources = [steps[node.flat_source_index] for node in nodes]
    dtypes = [_dtypes.as_dtype(source.dtype) for source in sources]
    if any(dtype != dtypes[0] for dtype in dtypes):
        raise ValueError(
            f"Configs produce trajectories with multiple dtypes at {path}. "
            f"Got {[source.dtype for source in sources]}."
        )
    shapes = [_column_shape(path, *pair, length) for pair in zip(nodes, sources)]
    if any(len(shape) != len(shapes[0]) or shape[1:] != shapes[0][1:] for shape in shapes):
        raise ValueError(
            f"Configs produce trajectories with incompatible shapes at {path}. Got {shapes}."
        )
    shape = shapes[0]
    if any(other != shape for other in shapes):
        shape = (None, *shape[1:])
    return TensorSpec(shape, dtypes[0], "/".join(map(str, path)))


def _column_shape(path: tuple, node: Any, source: Any, length: Callable) -> tuple:
    if source.shape is None or getattr(source.shape, "rank", 0) is None:
        raise ValueError(f"The rank of the steps of {path} must be known.")
    shape = tuple(None if size is None else int(size) for size in source.shape)
    if not node.HasField("start"):
        return shape
    return (length(node.start, node.stop, node.step or 1), *shape)
