"""Seeds, a nested configuration with overrides from the command line, and what is written down about a run."""

import json
import os
import random
import sys
from ast import literal_eval

import numpy as np
import torch


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def setup_logging(config):
    work_dir = config.system.work_dir
    os.makedirs(work_dir, exist_ok=True)
    with open(os.path.join(work_dir, "args.txt"), "w") as f:
        f.write(" ".join(sys.argv))
    with open(os.path.join(work_dir, "config.json"), "w") as f:
        f.write(json.dumps(config.to_dict(), indent=4))


class Config:
    """A tree of settings, which are attributes."""

    def __init__(self, **settings):
        self.__dict__.update(settings)

    def __str__(self):
        return self._lines(0)

    def _lines(self, indent):
        parts = []
        for k, v in self.__dict__.items():
            if isinstance(v, Config):
                parts.append(f"{k}:\n")
                parts.append(v._lines(indent + 1))
            else:
                parts.append(f"{k}: {v}\n")
        parts = [" " * (indent * 4) + p for p in parts]
        return "".join(parts)

    def to_dict(self):
        return {k: v.to_dict() if isinstance(v, Config) else v for k, v in self.__dict__.items()}

    def merge_from_dict(self, settings):
        self.__dict__.update(settings)

    def merge_from_args(self, args):
        """Each of ``args`` is like ``--trainer.batch_size=32``."""
        for arg in args:
            keyval = arg.split("=")
            assert len(keyval) == 2, f"not of the form --name=value: {arg}"
            key, val = keyval
            try:
                val = literal_eval(val)
            except ValueError:
                pass
            assert key[:2] == "--"
            *path, leaf = key[2:].split(".")
            obj = self
            for k in path:
                obj = getattr(obj, k)
            assert hasattr(obj, leaf), f"there is no setting {key}"
            print(f"command line: {key[2:]} = {val}")
            setattr(obj, leaf, val)
