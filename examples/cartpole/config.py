"""What the demo is tuned to: a learning agent in about a minute on two cores."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    """Hyperparameters and budgets; every process gets the same copy.

    Attributes:
      seconds: wall-clock budget, counted from the first insert.
      max_steps: environment steps of all actors together.
      window: episodes whose mean return is compared, the first with the last.
      required_return, required_growth: the run succeeds if the mean return of the last `window`
        episodes reaches `required_return` and `required_growth` times that of the first.
      solved_return: the run stops early once the last `window` episodes average this, which is what
        Gymnasium calls solved.
      observation_scale: of position, velocity, angle (the small one) and angular velocity.
      samples_per_insert: how often a step is learned from, on average. The limiter holds actors
        back when the learner is behind, and the learner when the actors are.
      random_steps, decay_steps: steps of one actor that are all random; over which its
        exploration then falls to `final_epsilons[actor]`.
    """

    seed: int = 1
    seconds: float = 60.0
    max_steps: int = 150_000

    window: int = 20
    required_return: float = 100.0
    required_growth: float = 3.0
    solved_return: float = 475.0

    num_actors: int = 2
    n_step: int = 10
    discount: float = 0.99
    observation_scale: tuple[float, ...] = (1.0, 1.0, 8.0, 1.0)
    random_steps: int = 500
    decay_steps: int = 3_000
    final_epsilons: tuple[float, ...] = (0.02, 0.05)
    refresh_steps: int = 200

    replay_size: int = 30_000
    min_replay_size: int = 1_000
    samples_per_insert: float = 8.0
    priority_exponent: float = 0.6

    hidden_sizes: tuple[int, ...] = (64, 64)
    batch_size: int = 64
    learning_rate: float = 2e-3
    importance_exponent: float = 0.5
    target_period: int = 100
    publish_period: int = 20
    sampler_threads: int = 2
