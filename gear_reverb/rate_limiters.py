"""Rate limiters: when a table lets items be inserted and sampled.

With `i` inserts, `s` samples and `d` deletes so far, and `diff = i * samples_per_insert - s`,

  * sampling n is allowed if `i - d >= min_size_to_sample` and `diff - n >= min_diff`;
  * inserting n is allowed if `i + n - d <= min_size_to_sample` or
    `diff + n * samples_per_insert <= max_diff`.

Calls that are not allowed wait until they are.
"""

import logging
import math
import sys

import numpy as np

from gear_reverb import pybind
from gear_reverb._arguments import integer, number

_logger = logging.getLogger(__name__)
_UNBOUNDED = sys.float_info.max


class RateLimiter:
    """Keeps `diff` (see above) within `[min_diff, max_diff]`.

    Attributes:
      internal_limiter: The core's object.
    """

    def __init__(
        self,
        samples_per_insert: float,
        min_size_to_sample: int,
        min_diff: float,
        max_diff: float,
    ) -> None:
        """Any difference is allowed by `-sys.float_info.max` and `sys.float_info.max`.

        Args:
          samples_per_insert: Samples that balance one insert.
          min_size_to_sample: Items that the table must hold before anything is sampled.
          min_diff: Sampling waits while it would take `diff` below this.
          max_diff: Inserting waits while it would take `diff` above this.

        Raises:
          ValueError: If `min_size_to_sample` is below 1, `samples_per_insert` is not a positive
            number, a difference is not a number, or `max_diff` is below `min_diff`.
        """
        samples_per_insert = number("samples_per_insert", samples_per_insert)
        min_size_to_sample = integer("min_size_to_sample", min_size_to_sample)
        min_diff, max_diff = number("min_diff", min_diff), number("max_diff", max_diff)
        if min_size_to_sample < 1:
            raise ValueError(
                f"min_size_to_sample ({min_size_to_sample}) must be a positive integer"
            )
        if not 0 < samples_per_insert < math.inf:
            raise ValueError(f"samples_per_insert ({samples_per_insert}) must be a positive number")
        if math.isnan(min_diff) or math.isnan(max_diff):
            raise ValueError(f"min_diff ({min_diff}) and max_diff ({max_diff}) must be numbers")
        self._samples_per_insert = samples_per_insert
        self._min_size_to_sample = min_size_to_sample
        self._min_diff = min_diff
        self._max_diff = max_diff
        self.internal_limiter = pybind.RateLimiter(
            samples_per_insert=samples_per_insert,
            min_size_to_sample=min_size_to_sample,
            min_diff=min_diff,
            max_diff=max_diff,
        )

    def __repr__(self) -> str:
        return (
            f"RateLimiter(samples_per_insert={self._samples_per_insert:g}, "
            f"min_diff={self._min_diff:g}, max_diff={self._max_diff:g}, "
            f"min_size_to_sample={self._min_size_to_sample})"
        )


class MinSize(RateLimiter):
    """Sampling waits for a number of items; nothing else is limited."""

    def __init__(self, min_size_to_sample: int) -> None:
        """Sampling waits until the table holds `min_size_to_sample` >= 1 items."""
        super().__init__(
            samples_per_insert=1.0,
            min_size_to_sample=min_size_to_sample,
            min_diff=-_UNBOUNDED,
            max_diff=_UNBOUNDED,
        )


class SampleToInsertRatio(RateLimiter):
    """Holds the ratio of samples to inserts near a target, with some slack."""

    def __init__(
        self,
        samples_per_insert: float,
        min_size_to_sample: int,
        error_buffer: float | tuple[float, float],
    ) -> None:
        """The wider the buffer, the less sampling and inserting wait for each other.

        Args:
          samples_per_insert: The average number of times that an item is sampled.
          min_size_to_sample: Items that the table must hold before anything is sampled.
          error_buffer: The slack, in samples: a pair is `(min_diff, max_diff)`; a number reaches
            that far to both sides of `samples_per_insert * min_size_to_sample`.

        Raises:
          ValueError: If `min_size_to_sample` is below 1, `samples_per_insert` is not positive, or
            the buffer is so small, or so high, that the table would come to a halt.
        """
        balance = number("samples_per_insert", samples_per_insert) * integer(
            "min_size_to_sample", min_size_to_sample
        )
        if np.ndim(error_buffer) > 0:
            min_diff, max_diff = map(float, error_buffer)
            width = max_diff - min_diff
        else:
            error_buffer = number("error_buffer", error_buffer)
            min_diff, max_diff = balance - error_buffer, balance + error_buffer
            width = 2 * error_buffer
        if width < 2 * max(1.0, samples_per_insert):
            raise ValueError(
                "The size of error_buffer must be >= max(1.0, samples_per_insert), or it could "
                f"block sampling or inserting for ever; got [{min_diff:g}, {max_diff:g}]"
            )
        if min_diff > balance:
            raise ValueError(
                f"The range covered by error_buffer, [{min_diff:g}, {max_diff:g}], is above "
                f"samples_per_insert * min_size_to_sample = {balance:g}: "
                "a deadlock once min_size_to_sample items are in"
            )
        super().__init__(samples_per_insert, min_size_to_sample, min_diff, max_diff)
        if max_diff < balance:
            _logger.warning(
                "The range covered by error_buffer, [%g, %g], is below samples_per_insert * "
                "min_size_to_sample = %g: unless sampling is concurrent, a deadlock once "
                "min_size_to_sample items are in",
                min_diff,
                max_diff,
                balance,
            )


class Queue(RateLimiter):
    """At most `size` items that wait to be sampled; every item is sampled once."""

    def __init__(self, size: int) -> None:
        """Inserting waits while `size` items are in the table, sampling while none is."""
        super().__init__(1.0, 1, min_diff=0.0, max_diff=number("size", size))


class Stack(RateLimiter):
    """The limits of `Queue`, for tables that select the newest item."""

    def __init__(self, size: int) -> None:
        """Inserting waits while `size` items are in the table, sampling while none is."""
        super().__init__(1.0, 1, min_diff=0.0, max_diff=number("size", size))
