"""Q-learning with PyTorch from prioritized replay: which way out of a corridor?

    python examples/torch_dqn/main.py [--updates 600] [--seed 1]

A corridor has ten cells, with the exit on the right. A random walker's steps go to a replay
table; a small network learns from `gear_reverb.torch.ReplayDataset`, and its errors become the
priorities of what it drew. The values of the corridor are known, so the error is that against the
truth. Exit status 0 if it fell to a fifth and the learned policy walks to the exit. Takes some
seconds.
"""

import argparse
import sys

import numpy as np
import torch
from torch import nn

import gear_reverb as reverb
import gear_reverb.torch as reverb_torch

CELLS, ACTIONS, DISCOUNT = 10, 2, 0.9
STEPS, BATCH = 4000, 128
TABLE = "replay"
SIGNATURE = {
    "cell": reverb.TensorSpec((), np.int32),
    "action": reverb.TensorSpec((), np.int32),
    "reward": reverb.TensorSpec((), np.float32),
    "next_cell": reverb.TensorSpec((), np.int32),
    "discount": reverb.TensorSpec((), np.float32),
}


def walk(client: reverb.Client, rng: np.random.Generator) -> None:
    """Inserts the transitions of a walker who turns at random and starts over at the exit."""
    cell = 0
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        for _ in range(STEPS):
            action = int(rng.integers(ACTIONS))
            next_cell = min(max(cell + 2 * action - 1, 0), CELLS - 1)
            at_exit = next_cell == CELLS - 1
            writer.append(
                {
                    "cell": np.int32(cell),
                    "action": np.int32(action),
                    "reward": np.float32(at_exit),
                    "next_cell": np.int32(next_cell),
                    "discount": np.float32(0 if at_exit else DISCOUNT),
                }
            )
            item = {name: writer.history[name][-1] for name in SIGNATURE}
            writer.create_item(TABLE, priority=1.0, trajectory=item)
            cell = 0 if at_exit else next_cell


def true_values() -> torch.Tensor:
    """[CELLS - 1, ACTIONS], by value iteration."""
    values = np.zeros((CELLS - 1, ACTIONS))
    for _ in range(200):
        best = np.append(values.max(axis=1), 0.0)
        for cell in range(CELLS - 1):
            for action in range(ACTIONS):
                following = max(cell + 2 * action - 1, 0)
                at_exit = following == CELLS - 1
                values[cell, action] = 1.0 if at_exit else DISCOUNT * best[following]
    return torch.from_numpy(values).float()


def network() -> nn.Module:
    return nn.Sequential(nn.Embedding(CELLS, 32), nn.ReLU(), nn.Linear(32, ACTIONS))


def learn(client: reverb.Client, updates: int, seed: int) -> tuple[float, float, bool]:
    """The mean error of the values before and after, and whether the policy leads to the exit."""
    torch.manual_seed(seed)
    online, target = network(), network()
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-3)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=updates)
    cells, truth = torch.arange(CELLS - 1), true_values()

    def error() -> float:
        with torch.no_grad():
            return (online(cells) - truth).abs().mean().item()

    dataset = reverb_torch.ReplayDataset(
        client.server_address, TABLE, BATCH, beta=0.4, timeout=30, max_batches=updates
    )
    before = error()
    for number, batch in enumerate(dataset):
        if number % 20 == 0:
            target.load_state_dict(online.state_dict())
        step = batch.data
        with torch.no_grad():
            following = target(step["next_cell"].long()).max(dim=1).values
            wanted = step["reward"] + step["discount"] * following
        chosen = online(step["cell"].long()).gather(1, step["action"].long()[:, None]).squeeze(1)
        difference = wanted - chosen
        loss = (batch.weights * difference.square()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
        priorities = difference.detach().abs().numpy() + 1e-3
        client.update_priorities(TABLE, batch.info.key.numpy(), priorities)
        if number % 100 == 0:
            print(f"update {number:4}: loss {loss.item():.5f}, error of the values {error():.3f}")
    with torch.no_grad():
        leads_out = bool((online(cells).argmax(dim=1) == 1).all())
    return before, error(), leads_out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = reverb.Table(
        TABLE,
        sampler=reverb.selectors.Prioritized(0.6),
        remover=reverb.selectors.Fifo(),
        max_size=STEPS,
        rate_limiter=reverb.rate_limiters.MinSize(BATCH),
        signature=SIGNATURE,
    )
    server = reverb.Server([table])
    try:
        client = server.localhost_client()
        walk(client, np.random.default_rng(arguments.seed))
        before, after, leads_out = learn(client, arguments.updates, arguments.seed)
    finally:
        server.stop()
    passed = leads_out and after < before / 5
    print(
        f"{'PASS' if passed else 'FAIL'}  error of the values {before:.3f} -> {after:.3f}, "
        f"the policy {'leads' if leads_out else 'does not lead'} to the exit"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
