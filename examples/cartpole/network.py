"""A Q-network in NumPy: rectified layers over one flat parameter vector, and Adam."""

from collections.abc import Sequence

import numpy as np


class QNetwork:
    """Values of all actions. The parameters are one vector, so copying a network is one copy."""

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator | None = None):
        """`sizes`: observation, hidden layers, actions. Zero parameters without `rng`."""
        self._shapes = list(zip(sizes[:-1], sizes[1:], strict=True))
        self.parameters = np.zeros(sum((i + 1) * o for i, o in self._shapes), np.float32)
        self._layers = self._views(self.parameters)
        if rng is not None:
            for weights, _ in self._layers:
                scale = np.sqrt(2 / weights.shape[0])
                weights[:] = rng.normal(0, scale, weights.shape)

    def _views(self, flat: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights [in, out] and bias [out] of every layer, inside `flat`."""
        layers, start = [], 0
        for inputs, outputs in self._shapes:
            middle, end = start + inputs * outputs, start + (inputs + 1) * outputs
            layers.append((flat[start:middle].reshape(inputs, outputs), flat[middle:end]))
            start = end
        return layers

    def _activations(self, observations: np.ndarray) -> list[np.ndarray]:
        """The input of every layer, then the output of the last."""
        activations = [observations]
        for weights, bias in self._layers[:-1]:
            activations.append(np.maximum(activations[-1] @ weights + bias, 0))
        weights, bias = self._layers[-1]
        activations.append(activations[-1] @ weights + bias)
        return activations

    def values(self, observations: np.ndarray) -> np.ndarray:
        """[batch, observation] or [observation] to [batch, action] or [action]."""
        return self._activations(observations)[-1]

    def gradient(
        self,
        observations: np.ndarray,
        actions: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the weighted mean Huber loss (threshold 1), and errors f32[batch]."""
        activations = self._activations(observations)
        rows = np.arange(len(actions))
        errors = targets - activations[-1][rows, actions]
        delta = np.zeros_like(activations[-1])
        delta[rows, actions] = -weights * np.clip(errors, -1, 1) / len(actions)
        flat = np.empty_like(self.parameters)
        gradients = self._views(flat)
        for index in reversed(range(len(self._layers))):
            gradients[index][0][:] = activations[index].T @ delta
            gradients[index][1][:] = delta.sum(axis=0)
            if index > 0:
                delta = (delta @ self._layers[index][0].T) * (activations[index] > 0)
        return flat, errors


class Adam:
    """Kingma & Ba, 2015, with the gradient's norm clipped."""

    def __init__(self, size: int, learning_rate: float, max_norm: float = 10.0):
        self._learning_rate, self._max_norm = learning_rate, max_norm
        self._mean = np.zeros(size, np.float32)
        self._square = np.zeros(size, np.float32)
        self._steps = 0

    def update(self, parameters: np.ndarray, gradient: np.ndarray) -> None:
        """Changes `parameters` in place."""
        gradient = gradient * min(1.0, self._max_norm / (float(np.linalg.norm(gradient)) + 1e-8))
        self._steps += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient**2 - self._square)
        mean = self._mean / (1 - 0.9**self._steps)
        square = self._square / (1 - 0.999**self._steps)
        parameters -= self._learning_rate * mean / (np.sqrt(square) + 1e-8)
