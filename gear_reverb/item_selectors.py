"""Strategies that select items: for sampling (a table's sampler) or for eviction (its remover)."""

import functools

from gear_reverb import pybind

Fifo = pybind.FifoSelector
"""The oldest item."""

Lifo = pybind.LifoSelector
"""The newest item."""

Uniform = pybind.UniformSelector
"""Every item with the same probability."""

Prioritized = pybind.PrioritizedSelector
"""An item with probability proportional to `priority ** priority_exponent`."""

MinHeap = functools.partial(pybind.HeapSelector, True)
"""The item with the lowest priority; of equals, the least recently inserted or updated."""

MaxHeap = functools.partial(pybind.HeapSelector, False)
"""The item with the highest priority; of equals, the least recently inserted or updated."""
