"""Stable-Baselines3's PPO on CartPole. The line marked with an arrow adds this package.

Run it with `python -m examples.loops.ppo`, then `torchgraph serve runs`; it needs `pip install stable-baselines3`. The
policy acts under `no_grad`, and is trained through its method `evaluate_actions`.
"""

from __future__ import annotations

from stable_baselines3 import PPO
from torch import nn

from torchgraph_explorer import watch

ROLLOUTS, SAMPLES, BATCH, EPOCHS = 3, 128, 64, 3


def main() -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    agent = PPO("MlpPolicy", "CartPole-v1", n_steps=SAMPLES, batch_size=BATCH, n_epochs=EPOCHS, seed=0, device="cpu")
    watch(agent.policy, log_freq=3, backend="record")  # <--
    agent.learn(ROLLOUTS * SAMPLES)
    return agent.policy, ROLLOUTS * EPOCHS * SAMPLES // BATCH


if __name__ == "__main__":
    main()
