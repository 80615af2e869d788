"""Which function of ``torch.utils.checkpoint`` calls what is given to a checkpoint.

Up to torch 2.13 it is ``checkpoint`` itself; in 2.15 it is one that calls of decorated functions reach, too.

Key names: FILE, CALLS_THE_FUNCTION.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any, Final

import torch.utils.checkpoint

FILE: Final = torch.utils.checkpoint.__file__
_CALLS: Final[Any] = getattr(torch.utils.checkpoint, "_checkpoint_impl", torch.utils.checkpoint.checkpoint)
CALLS_THE_FUNCTION: Final[CodeType] = inspect.unwrap(_CALLS).__code__
