"""PPO of stable-baselines3 on a small environment."""

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO

torch.manual_seed(7)


class Line(gymnasium.Env):
    """Walk to the right end of a line."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def _seen(self):
        return np.array([self.at / 5.0 - 1.0, self.steps / 20.0], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 5, 0
        return self._seen(), {}

    def step(self, action):
        self.at += 1 if action == 1 else -1
        self.steps += 1
        done = self.at in (0, 10)
        return self._seen(), float(self.at == 10), done, self.steps >= 20, {}


agent = PPO("MlpPolicy", Line(), n_steps=64, batch_size=32, n_epochs=4, seed=7, device="cpu")
agent.learn(256)
print(f"value {agent.policy.predict_values(torch.zeros(1, 2)).item():.5f}")
