"""Patterns applied to a dataset of steps, without a server.

TensorFlow is imported with the first use of `PatternDataset`, not with this module.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

    from gear_reverb._pattern_graph import PatternDataset
    from gear_reverb.cc import patterns_pb2

__all__ = ["PatternDataset", "pattern_dataset_with_info"]


def pattern_dataset_with_info(
    input_dataset: "tf.data.Dataset",
    configs: "Sequence[patterns_pb2.StructuredWriterConfig]",
    respect_episode_boundaries: bool,
    is_end_of_episode: Callable[[Any], bool],
) -> "tf.data.Dataset":
    """As `PatternDataset`, with `ReplaySample` elements whose info is all zeros.

    Args and errors are those of `PatternDataset`.
    """
    import tensorflow as tf

    from gear_reverb._pattern_graph import PatternDataset
    from gear_reverb.replay_sample import ReplaySample, SampleInfo

    @tf.autograph.experimental.do_not_convert
    def with_info(*data: Any) -> ReplaySample:
        return ReplaySample(SampleInfo.zeros(), data if is_tuple else data[0])

    dataset = PatternDataset(input_dataset, configs, respect_episode_boundaries, is_end_of_episode)
    is_tuple = type(dataset.element_spec) is tuple
    return dataset.map(with_info)


def __getattr__(name: str) -> Any:
    if name != "PatternDataset":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gear_reverb._pattern_graph import PatternDataset

    globals()[name] = PatternDataset
    return PatternDataset
