"""A named program to run, from ``[[tool.magpy.entrypoints]]``. Key type: Entrypoint; key
function: problem_of_variable."""

from __future__ import annotations

import attrs


@attrs.frozen
class Entrypoint:
    """Like an entry of launch.json: ``program`` (a file) or ``module``, never both. None: not set.

    ``program``, ``cwd`` and a ``python`` with a slash are relative to the folder of the table's file, which is also the
    default ``cwd``. ``env`` extends the environment. ``nproc`` above 0: that many processes of torch.distributed.
    """

    name: str
    program: str | None = None
    module: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = attrs.field(factory=dict)
    cwd: str | None = None
    python: str | None = None
    steps: int | None = None
    timeout: float | None = None
    nproc: int = 0


def problem_of_variable(name: str, value: str) -> str | None:
    """Why the system would not take an environment variable."""
    if not name or "=" in name:
        return "its name contains `=`" if name else "it has no name"
    return "it contains a null character" if "\0" in name + value else None
