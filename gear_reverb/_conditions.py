"""When a StructuredWriter makes items, and with which priority."""

import operator
from collections.abc import Callable
from typing import Any

import tree

from gear_reverb.cc import patterns_pb2

ConditionProto = patterns_pb2.Condition


class _ConditionBuilder:
    """The left side of a condition; comparing it to an integer gives the condition.

    A remainder (`%`) can be compared by `==` and `!=`; other comparisons forget about it.
    """

    def __init__(self, incomplete_condition: ConditionProto) -> None:
        self._incomplete_condition = incomplete_condition

    def _complete(self, **fields: Any) -> ConditionProto:
        condition = ConditionProto()
        condition.CopyFrom(self._incomplete_condition)
        condition.ClearField("mod_eq")
        condition.MergeFrom(ConditionProto(**fields))
        return condition

    def __mod__(self, cmp: int) -> "_ConditionBuilder":
        return _ConditionBuilder(
            self._complete(mod_eq=ConditionProto.ModuloEq(mod=operator.index(cmp)))
        )

    def __eq__(self, cmp: int) -> ConditionProto:  # type: ignore[override]
        cmp = operator.index(cmp)
        if modulus := self._incomplete_condition.mod_eq.mod:
            return self._complete(mod_eq=ConditionProto.ModuloEq(mod=modulus, eq=cmp))
        return self._complete(eq=cmp)

    def __ne__(self, cmp: int) -> ConditionProto:  # type: ignore[override]
        condition = self == cmp
        condition.inverse = True
        return condition

    def __ge__(self, cmp: int) -> ConditionProto:
        return self._complete(ge=operator.index(cmp))

    def __gt__(self, cmp: int) -> ConditionProto:
        return self._complete(ge=cmp + 1)

    def __lt__(self, cmp: int) -> ConditionProto:
        return self._complete(ge=operator.index(cmp), inverse=True)

    def __le__(self, cmp: int) -> ConditionProto:
        return self._complete(ge=cmp + 1, inverse=True)


class Condition:
    """Left sides of conditions: compare one to an integer, as in `Condition.step_index() >= 3`."""

    @staticmethod
    def step_index() -> _ConditionBuilder:
        """Index of the newest step in its episode, from 0."""
        return _ConditionBuilder(ConditionProto(step_index=True))

    @staticmethod
    def steps_since_applied() -> _ConditionBuilder:
        """Steps appended since the config last made an item, in this episode or an earlier one."""
        return _ConditionBuilder(ConditionProto(steps_since_applied=True))

    @staticmethod
    def is_end_episode() -> ConditionProto:
        """Whether the episode ends: the config is applied by `end_episode`, and only there."""
        return ConditionProto(is_end_episode=True, eq=1)

    @staticmethod
    def data(step_structure: Any) -> Any:
        """Nest in the structure of steps; each leaf is that column's value in the newest step.

        The column must hold integers or bools, one per step. A condition on a column that has no
        value in the newest step does not hold.
        """
        width = len(tree.flatten(step_structure))
        return tree.unflatten_as(
            step_structure,
            [_ConditionBuilder(ConditionProto(flat_source_index=index)) for index in range(width)],
        )


def constant_priority_fn(value: float) -> patterns_pb2.Priority:
    """The priority function that gives every item the priority `value`."""
    return patterns_pb2.Priority(constant_fn=patterns_pb2.Priority.ConstantPriorityFn(value=value))


def td_error(
    max_priority_weight: float,
    step_structure: Any,
    get_field_from_step_fn: Callable[[Any], Any],
) -> patterns_pb2.Priority:
    """The priority function of R2D2 (https://openreview.net/pdf?id=r1lyTjAqYX).

    An item's priority is `w * max(|e|) + (1 - w) * mean(|e|)` over its steps' TD errors `e`.

    Args:
      max_priority_weight: The weight `w` of the maximum, in [0, 1].
      step_structure: Nest in the structure of the data that will be appended; leaves do not count.
      get_field_from_step_fn: Picks the column with the TD errors, scalars of float32, float64,
        int32 or int64. An item's steps of it are those in the item's last column of it; if it has
        none, its priority is 0.
    """
    width = len(tree.flatten(step_structure))
    index = get_field_from_step_fn(tree.unflatten_as(step_structure, list(range(width))))
    return patterns_pb2.Priority(
        td_error=patterns_pb2.Priority.TDError(
            max_priority_weight=max_priority_weight, flat_source_index=index
        )
    )
