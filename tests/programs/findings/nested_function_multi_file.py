"""A class from a helper file, subclassed here: each finding in its own file."""

# files: helpers/layers.py
import random

import torch
from helpers.layers import Noisy


class Mine(Noisy):
    def amount(self):
        return random.random()  # expect: MP103 `random.random()`


torch.manual_seed(0)
Mine(4)(torch.randn(2, 4))
