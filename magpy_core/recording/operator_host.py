"""OperatorHost: the recording as the operator recorder and the shape tracker see it.

Key type: OperatorHost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from magpy_core._compat.torch.cleared_gradients import sets_to_none
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE, Unsupported
from magpy_core.guards import kinds as guard
from magpy_core.monitor.positions import is_user_file, user_frame
from magpy_core.opgraph.autograd import out_of_reach
from magpy_core.opgraph.functions import note
from magpy_core.opgraph.hooks import HOOKS
from magpy_core.opgraph.host import Finish
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.values import tensors_in
from magpy_core.recording.call_stack import TensorLength
from magpy_core.recording.dynamic import assume_dims
from magpy_core.recording.journal import FAILED
from magpy_core.refgraph.arrays import is_array
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_table import SourceTable

if TYPE_CHECKING:
    from magpy_core.recording.context import Context

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _unrecorded() -> None:
    """Replaces unrecorded operations in the graph of a refused or skipped recording, which is only run on fake tensors: what
    follows from such an operation is not known, and has been reported."""
    raise Unsupported("", "")


class OperatorHost:
    """The recording as the operator recorder and the shape tracker see it: sources, guards and refusals."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.ledger, self.journal = context.ledger, context.journal
        self.refuse = self.journal.refuse
        self.branch = context.decisions.branch
        self.escape = context.numbers.escape
        self.is_plain_array = context.arrays.is_plain_array
        self.share_array = context.arrays.mark_shared
        self.gives_number_to_program = context.stack.reads_number_of
        self.shows_number = context.varying_texts.shows
        self.show_number = context.varying_texts.show
        self._written_inside: set[str] = set()

    @property
    def ops(self) -> OperatorGraph:
        return self.ledger.ops

    @property
    def sources(self) -> SourceTable:
        return self.ledger.sources

    @property
    def site(self) -> Any:
        return self.journal.site

    def paused(self) -> bool:
        return self.context.pauses.paused() or self.context.array_values.is_making_tensor

    @property
    def is_given_up(self) -> bool:
        return self.journal.refused or bool(self.journal.skip_reason)

    @property
    def call_keeps_state(self) -> bool:
        return self.context.torch_calls.alone

    @property
    def graph_incomplete(self) -> bool:
        return self.journal.graph_incomplete

    @graph_incomplete.setter
    def graph_incomplete(self, value: bool) -> None:
        self.journal.graph_incomplete = value

    def array_made(self, node: torch.fx.Node, tensor: torch.Tensor, array: Any) -> None:
        self.context.array_values.of_tensor(node, tensor, array)

    def gives_tensor(self, value: Any) -> bool:
        return is_array(value) and self.context.array_values.gives_tensor(value, self.journal.site)

    def index_of_array(self, value: Any) -> torch.Tensor | None:
        return self.context.array_values.index_made(value, self.journal.site) if is_array(value) else None

    def tensor_of_array(self, fn: Any, array: Any, options: dict[str, Any], tensor: Any) -> Any:
        return self.context.array_values.tensor_made(fn, array, options, tensor)

    def torch_call_started(self) -> None:
        self.context.stack.torch = None

    def field_written(self, tensor: torch.Tensor, name: str, value: Any) -> None:
        self.context.writes.field_written(tensor, name, value)

    def begin(self, step: Callable[..., Any], *args: Any) -> Any:
        """The result of ``step``; None if it failed, which refuses the capture."""
        prepared = self.journal.contained(step, *args)
        return None if prepared is FAILED else prepared

    def finish(self, pending: Finish | None, result: Any) -> Any:
        """The result for the program: ``result`` itself if a step failed."""
        if pending is not None:
            given = self.journal.contained(pending, result)
            if given is not FAILED:
                return given
        self.name_result(result)
        return result

    def name_result(self, result: Any) -> None:
        """Add nodes for the results of an unrecorded call, so that later operations on them are not refused."""
        for tensor in tensors_in(result):
            if tensor not in self.ops.values:
                self.ops.values.add(tensor, self.ops.graph.call_function(_unrecorded, ()))

    # -- tensors -----------------------------------------------------------------------------------------------

    def hooks_out_of_reach(self) -> None:
        """Refuse inputs with hooks that a compiled backward pass calls differently: it calls the hooks of every input, with
        None if there is no gradient, but none of them in a backward pass inside the region (``torch.autograd.grad``)."""
        if not torch.is_grad_enabled():
            return
        inputs = {id(tensor): (tensor, source) for _, source, tensor in self.ops.inputs.tensors}
        with no_torch_function():
            if any(node.target is torch.autograd.grad for node in self.ops.graph.nodes):
                apart = [t for t, _ in inputs.values() if t.requires_grad]
            else:
                apart = out_of_reach([t for t, _ in inputs.values()], [t for t, _ in self.ops.values])
            for tensor in apart:
                source = inputs[id(tensor)][1]
                if id(tensor) in self.ops.leaves.hooks.of_leaves:
                    continue
                if tensor._backward_hooks is None:
                    self.context.values.read(self.sources.make("field", source, "_backward_hooks"), None, self.journal.site)
                else:
                    text = f"`{source.describe()}` has hooks: a compiled backward pass would call them differently."
                    self.journal.refuse("MP916", text, site=self.journal.site)

    def source_of_outside(self, tensor: torch.Tensor) -> Source:
        node = self.ledger.refgraph.node(tensor)
        if node is not None:
            assume_dims(self.ledger, node.source, tensor)
            if type(tensor) is not torch.Tensor:
                self.context.classes.tensor_class(type(tensor), self.journal.site)
            return node.source
        if self.journal.graph_incomplete:  # reported where it was created
            raise Unsupported("", "")
        if self.context.age.is_made_inside(tensor):
            raise Unsupported("MP105", f"{HERE} uses a tensor that no recorded operation produced.")
        text = f"{HERE} uses a tensor that was reached in a way the monitor can't follow."
        raise Unsupported("MP111", text, hint="Pass the tensor to the region, or keep it in an attribute of the module.")

    def guard_field(self, source: Source, tensor: torch.Tensor, name: str, value: Any) -> None:
        for written, field_name, _, _ in self.ledger.field_writes:
            if written is tensor and field_name == name:
                return
        site = self.journal.site
        if name == "grad" and type(tensor) in _PLAIN and site is not None and sets_to_none(site.code, user_frame()):
            # what it was decides nothing: a call with a gradient and one without it have the same graph
            self.field_written(tensor, name, None)
            return
        self.context.values.read(self.sources.make("field", source, name), value, site)

    def guard_hooks(self, source: Source, tensor: torch.Tensor) -> tuple[Callable[..., Any], ...]:
        hooks: dict[int, Callable[..., Any]] = tensor._backward_hooks  # type: ignore[assignment]
        node = self.ledger.refgraph.add(hooks, self.sources.make("field", source, HOOKS))
        if node.snapshot is not None:
            text = f"{HERE} calls hooks that the region has changed."
            raise Unsupported("MP118", text, hint="Register and remove hooks outside the region.")
        self.context.contents.read_all(node, self.journal.site)
        for hook in hooks.values():
            self.guard_hook(hook)
        return tuple(hooks.values())

    def guard_hook(self, hook: Any) -> None:
        if not self.context.unobserved.guard(hook, self.journal.site):
            text = f"{HERE} calls a hook that reads more than its argument, constants and functions."
            hint = "Let it read no objects and change none, or call what it does after the backward pass."
            raise Unsupported("MP118", text, hint=hint)

    def guard_setting(self, getter: Callable[[], Any], value: Any) -> None:
        self.context.settings.read(self.journal.site, getter, (), value)

    def guard_contents(self, value: Any) -> None:
        node = self.ledger.refgraph.node(value)
        if node is not None:
            self.context.contents.read_all(node, self.journal.site)

    def guard_offset(self, source: Source, value: int) -> None:
        self.context.values.read(self.sources.make("offset", source, None), value, self.journal.site)

    def operation_raised(self, name: str) -> None:
        # it may raise depending on data that no guard checks
        self.journal.skip_call(f"`{name}` raised")

    def number_at_entry(self, source: Source, number: int) -> int:
        at = self.sources.make("number", source, None)
        self.ledger.refgraph.read(at, guard.TYPE, int, self.journal.site)
        given: int = self.ledger.scalars.bind(number, self.ledger.scalars.source(at, number))
        return given

    def tensor_length(self, number: Any) -> Any:
        """``len`` creates a new number: the program must get the copy that carries the symbol instead."""
        sym = self.ledger.scalars.get(number)
        if sym is not None:
            receive = self.context.stack.frames[-1].receive if self.context.stack.frames else None
            if isinstance(receive, TensorLength):
                receive.sym = sym
            else:
                self.escape(sym, self.journal.site)
        return number

    def free_dims(self, source: Source, tensor: torch.Tensor) -> set[int]:
        """The dynamic dimensions of an input.

        Operations treat sizes 0 and 1 specially (broadcasting, squeeze), and non-contiguous strides determine whether an
        operation copies: these are static.
        """
        dims = self.ledger.learned.dims.get(source.path)
        if not dims or tensor.layout is not torch.strided:
            return set()
        with no_torch_function():
            return {d for d in dims if d < tensor.dim() and tensor.shape[d] > 1} if tensor.is_contiguous() else set()

    def tensor_written(self, tensor: torch.Tensor, source: Source) -> None:
        site = self.journal.site
        if tensor.grad_fn is not None:
            self.ledger.with_history.add(source.path)
        if (site is None or not is_user_file(site.code.co_filename)) and source.path in self._written_inside:
            return  # several writes of a library to one tensor are one finding, because computing its place is slow
        self._written_inside.add(source.path)
        self.ledger.tensor_writes.append((tensor, source, site))
        self.journal.places.remember(source, self.journal.site)

    def unrecorded(self, name: str) -> None:
        """From the shadow recorder: an operator ran that no recorded call explains."""
        fn = self.context.stack.torch[1] if self.context.stack.torch is not None else None
        self.context.stack.torch = None
        self.journal.graph_incomplete = True
        if fn is not None and issubclass(type(fn), torch.jit.ScriptFunction):
            self.journal.refuse_compiled_code(f"`{fn.name}`, a torch.jit function,")
        if self.journal.is_unrecorded_call():
            return
        self.journal.refuse(
            "MP105",
            f"{HERE} runs `{name}` outside torch's Python API, so the graph would miss it.",
            hint="Create the tensor outside the region, or with torch.tensor, torch.stack or torch.zeros: from_numpy and "
            "constructors like FloatTensor can't be recorded for tensors and arrays.",
        )

    def annotate(self, node: torch.fx.Node, result: Any) -> None:
        """Note the location and the result of an operation for display."""
        site, places = self.journal.site, self.journal.places
        note(node, result, magpy_site=site, magpy_user=places.user_line(site), magpy_outer=places.outer())
