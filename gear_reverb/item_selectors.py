"""Strategies that select items: for sampling (a table's sampler) or for eviction (its remover)."""

import functools

from gear_reverb import pybind

Fifo = pybind.FifoSelector
Lifo = pybind.LifoSelector
Uniform = pybind.UniformSelector
Prioritized = pybind.PrioritizedSelector

MinHeap = functools.partial(pybind.HeapSelector, True)
MinHeap.__doc__ = (
    "The item with the lowest priority; of equals, the least recently inserted or updated."
)

MaxHeap = functools.partial(pybind.HeapSelector, False)
MaxHeap.__doc__ = (
    "The item with the highest priority; of equals, the least recently inserted or updated."
)
