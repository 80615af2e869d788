"""Training loops that stand in a function or in the script itself: the body of each is a step. Key type: Loops."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING

from magpy_core.runner.loop_progress import LoopProgress
from magpy_core.runner.step_bodies import StepBody
from magpy_core.stretches.loops import cut_loops, trains
from magpy_core.stretches.originals import cut_codes
from magpy_core.stretches.stretch import Stretch

if TYPE_CHECKING:
    from magpy_core.runner.discovery import Discovery


class Loops:
    """Compiles modules so that the bodies of their training loops can be regions."""

    def __init__(self, discovery: Callable[[], Discovery], progress: LoopProgress) -> None:
        self._discovery, self._progress = discovery, progress
        self._has_torch = False

    def cut(self, tree: ast.Module, code: CodeType, filename: str) -> Callable[[CodeType], CodeType]:
        """Cuts the loops in ``tree``, the source of ``code``. Returns what is to be done with its compiled code."""
        finish = cut_loops(tree, filename, code, self._receiver, self._progress.watch)[1]

        def finish_and_keep(compiled: CodeType) -> CodeType:
            made = finish(compiled)
            if self._has_torch:
                keep_out_of_dynamo()
            return made

        return finish_and_keep

    def torch_was_imported(self) -> None:
        """From now on, the program may use torch.compile, which can't read what is cut."""
        self._has_torch = True
        keep_out_of_dynamo()

    def _receiver(self, stretch: Stretch) -> StepBody:
        what, where = "training loop", stretch.scope.qualname
        if not trains(stretch.statements):
            what, where = "closure", where.rpartition(".<locals>.")[0] or "<module>"
        name = functools.cache(lambda: self._discovery().name_of_step(what, where))
        return StepBody(self._discovery, stretch, name, begins_in_parts=True)


def keep_out_of_dynamo() -> None:
    """TorchDynamo can't read the codes that were cut."""
    if codes := cut_codes():
        from magpy_core._compat.torch.dynamo_watch import keep_out

        keep_out(codes)
