"""Plans: nests that look like an earlier one, flattened in the core."""

import collections

from gear_reverb._columns import compile_flatten

Pair = collections.namedtuple("Pair", "a b")


class LyingPair(Pair):
    def __len__(self):
        return 2


def test_a_tuple_may_be_shorter_than_it_says():
    flatten = compile_flatten(LyingPair(1.0, 2.0), {float})
    assert flatten(LyingPair(3.0, 4.0)) == [3.0, 4.0]
    assert flatten(tuple.__new__(LyingPair, (3.0,))) is None
