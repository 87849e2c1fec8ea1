"""A stand-in for the core's trajectory writer, which records what it is told."""

import numpy as np


class Ref:
    """A reference to one step of one column."""

    def __init__(self, value):
        self.value = np.asarray(value)
        self.expired = False

    shape = property(lambda self: list(self.value.shape))
    dtype = property(lambda self: self.value.dtype)

    def numpy(self):
        return self.value

    def __eq__(self, other):
        return isinstance(other, Ref) and np.array_equal(self.value, other.value)

    def __repr__(self):
        return f"Ref({self.value})"


class InternalWriter:
    """Records calls; `errors` maps a method's name to what it raises."""

    def __init__(self, max_num_keep_alive_refs=5):
        self.max_num_keep_alive_refs = max_num_keep_alive_refs
        self.episode_steps = 0
        self.calls = []
        self.errors = {}

    def _call(self, name, *args):
        self.calls.append((name, *args))
        if name in self.errors:
            raise self.errors[name]

    def Append(self, data):
        self._call("Append", list(data))
        self.episode_steps += 1
        return [None if value is None else Ref(value) for value in data]

    def AppendPartial(self, data):
        self._call("AppendPartial", list(data))
        return [None if value is None else Ref(value) for value in data]

    def CreateItem(self, table, priority, columns):
        references = [list(column) for column in columns]
        squeezed = [column.is_squeezed for column in columns]
        self._call("CreateItem", table, priority, references, squeezed)

    def ConfigureChunker(self, column, options):
        self._call("ConfigureChunker", column, options)

    def Flush(self, ignore_last_num_items, timeout_ms):
        self._call("Flush", ignore_last_num_items, timeout_ms)

    def EndEpisode(self, clear_buffers, timeout_ms):
        self._call("EndEpisode", clear_buffers, timeout_ms)
        self.episode_steps = 0

    def Close(self):
        self._call("Close")

    def take(self):
        calls, self.calls = self.calls, []
        return calls


def values(column):
    return [None if ref is None else ref.value.item() for ref in column]
