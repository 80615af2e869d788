"""A class from a helper file, subclassed here: each finding in its own file."""

# files: helpers/layers.py
import time

import torch
from helpers.layers import Noisy


class Mine(Noisy):
    def amount(self):
        return time.time()  # expect: MP103 `time.time()`


torch.manual_seed(0)
Mine(4)(torch.randn(2, 4))
