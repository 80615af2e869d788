"""A named program to run, from ``[[tool.magpy.entrypoints]]``. Key type: Entrypoint."""

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
