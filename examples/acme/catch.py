"""Catch: a ball falls down a board, and the paddle at its foot must be below it in the end."""

import dm_env
import numpy as np
from dm_env import specs

ROWS, COLUMNS = 10, 5


class Catch(dm_env.Environment):
    """Episodes of nine steps; the reward is 1 if the ball is caught and -1 if not, 0 before.

    Observations are the board, float32 [ROWS, COLUMNS], with ones where ball and paddle are.
    Actions move the paddle left (0), not at all (1) or right (2).
    """

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)
        self._over = True

    def reset(self) -> dm_env.TimeStep:
        self._over = False
        self._row, self._column = 0, int(self._random.integers(COLUMNS))
        self._paddle = COLUMNS // 2
        return dm_env.restart(self._board())

    def step(self, action: int) -> dm_env.TimeStep:
        if self._over:
            return self.reset()
        self._paddle = min(max(self._paddle + int(action) - 1, 0), COLUMNS - 1)
        self._row += 1
        if self._row < ROWS - 1:
            return dm_env.transition(reward=0.0, observation=self._board())
        self._over = True
        caught = self._paddle == self._column
        return dm_env.termination(reward=1.0 if caught else -1.0, observation=self._board())

    def observation_spec(self) -> specs.BoundedArray:
        return specs.BoundedArray((ROWS, COLUMNS), np.float32, 0, 1, name="board")

    def action_spec(self) -> specs.DiscreteArray:
        return specs.DiscreteArray(3, name="action")

    def _board(self) -> np.ndarray:
        board = np.zeros((ROWS, COLUMNS), np.float32)
        board[self._row, self._column] = board[ROWS - 1, self._paddle] = 1
        return board
