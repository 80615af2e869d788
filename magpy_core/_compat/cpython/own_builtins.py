"""A copy of the builtins for code that runs inside the user's frames: a program may replace ``len`` while it is recorded.

Functions defined after ``__builtins__ = OWN_BUILTINS`` in a module use this copy: CPython takes a function's builtins from
its globals when the function is created.
"""

from __future__ import annotations

import builtins
from typing import Any, Final

OWN_BUILTINS: Final[dict[str, Any]] = dict(vars(builtins))
