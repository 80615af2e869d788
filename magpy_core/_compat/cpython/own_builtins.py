"""A copy of the builtins for code that runs inside the user's frames: a program may replace ``len`` while it is recorded.

A module that says ``__builtins__ = OWN_BUILTINS`` before it defines functions has them look builtins up there: CPython takes
a function's builtins from its globals when the function is made.
"""

from __future__ import annotations

import builtins
from typing import Any, Final

OWN_BUILTINS: Final[dict[str, Any]] = dict(vars(builtins))
