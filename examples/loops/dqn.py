"""Stable-Baselines3's DQN on CartPole. The line marked with an arrow adds this package.

Run it with `python -m examples.loops.dqn`, then `torchgraph serve runs`; it needs `pip install stable-baselines3`. The
policy holds two networks: one is trained, and the other one, its target, follows it.
"""

from __future__ import annotations

from stable_baselines3 import DQN
from torch import nn

from torchgraph_explorer import watch


def main() -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    agent = DQN("MlpPolicy", "CartPole-v1", learning_starts=20, target_update_interval=40, seed=0, device="cpu")
    watch(agent.policy, log_freq=3, backend="record")  # <--
    agent.learn(120)
    return agent.policy, agent._n_updates


if __name__ == "__main__":
    main()
