"""Fake tensors and symbolic shapes behind named functions.

TorchDynamo itself uses the private modules wrapped here (`torch._subclasses`, `torch.fx.experimental.symbolic_shapes`,
`torch._dynamo.source`) to pass example inputs to a backend. Key functions: `new_fake_mode`, `fakify`, `symbolic_int`,
`shape_guards`; for symbolic sizes `sym_expression`, `assumptions`, `hint_of`.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from magpy_core._compat.torch.compilers import import_dynamo

# Symbolic shapes import sympy, which takes most of a second: the functions below import them for the first graph.
if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv


def symbolic_sizes_imported() -> bool:
    """Whether symbolic sizes have been used: the first shape environment imports sympy and TorchDynamo, in a second."""
    return "torch.fx.experimental.validator" in sys.modules


@cache
def guard_namespace() -> dict[str, Any]:
    """Names in guard expressions, besides the inputs."""
    from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

    return dict(SYMPY_INTERP)


def new_fake_mode(*, dynamic: bool) -> tuple[FakeTensorMode, ShapeEnv]:
    """A fake mode with a new shape environment; ``dynamic`` allows data-dependent sizes."""
    import_dynamo()  # as the first shape environment does
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    shape_env = ShapeEnv(duck_shape=False, allow_scalar_outputs=dynamic, allow_dynamic_output_shape_ops=dynamic)
    return FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True), shape_env


@contextlib.contextmanager
def symbolic_shapes() -> Iterator[None]:
    """Use the Python implementations of composite operations, which support symbols where the C++ ones need plain ints, and
    log nothing if neither does."""
    from torch._dispatch.python import enable_python_dispatcher

    with enable_python_dispatcher(), no_meta_logs():
        yield


@contextlib.contextmanager
def no_meta_logs() -> Iterator[None]:
    """Suppress the traceback that torch logs if a shape function doesn't support symbols; the exception is handled by the
    caller."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addFilter(dropped := lambda record: False)
    try:
        yield
    finally:
        log.removeFilter(dropped)


class WritesRealTensor(RuntimeError):
    """Code that runs on fake tensors was about to change a real one."""


class ProtectRealTensors(TorchDispatchMode):
    """Runs the program's own code (a custom function, a script) on fake tensors without changing real ones. The code may
    refer to real tensors, and a fake mode really executes an operation on real tensors only. WritesRealTensor is raised
    before such a write, and ``stopped`` is set (the script interpreter converts the exception to another one)."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stopped = False
        self._functions = _ProtectFromFunctions(self)

    def __enter__(self) -> ProtectRealTensors:
        self._functions.__enter__()  # type: ignore[no-untyped-call]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)  # type: ignore[no-untyped-call]
        self._functions.__exit__(*exc)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = func._schema
        for place, arg in enumerate(schema.arguments if schema.is_mutable else ()):
            if arg.alias_info is not None and arg.alias_info.is_write:
                value = args[place] if place < len(args) else (kwargs or {}).get(arg.name)
                self.check(str(func), value if isinstance(value, list | tuple) else (value,))
        return func(*args, **(kwargs or {}))

    def check(self, what: str, written: Iterable[Any]) -> None:
        if any(isinstance(value, torch.Tensor) and not is_fake(value) for value in written):
            self.stopped = True
            raise WritesRealTensor(what)


_MEMORY = frozenset({
    "numpy", "__array__", "storage", "untyped_storage", "_typed_storage", "data_ptr", "__dlpack__", "swap_tensors",
    "backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "__setstate__",
})  # fmt: skip
"""Functions that dispatch no operator but may change a tensor, or expose its memory."""


class _ProtectFromFunctions(TorchFunctionMode):
    def __init__(self, protect: ProtectRealTensors) -> None:
        super().__init__()
        self.protect = protect

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _MEMORY or name in ("__set__", "__delete__") or (name.endswith("_") and not name.startswith("_")):
            self.protect.check(name, (*args, *(kwargs or {}).values()))
        return func(*args, **(kwargs or {}))


def source(name: str) -> Any:
    """A guard source printed as the Python expression ``name``."""
    from torch._dynamo.source import ConstantSource

    return ConstantSource(name)


def fakify(mode: FakeTensorMode, tensor: torch.Tensor, name: str, dynamic_dims: set[int]) -> FakeTensor:
    """The fake of a real tensor; through the mode's memo, fakes share storage if their tensors do."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    if not dynamic_dims:
        return mode.from_tensor(tensor, static_shapes=True)
    sizes = [DimDynamic.DYNAMIC if dim in dynamic_dims else DimDynamic.STATIC for dim in range(tensor.dim())]
    base_context: Any = None
    if tensor._is_view() and tensor._base is not None:
        base_context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.STATIC] * tensor._base.dim())
    context: Any = StatelessSymbolicContext(dynamic_sizes=sizes, view_base_context=base_context)
    return mode.from_tensor(tensor, static_shapes=False, source=source(name), symbolic_context=context)


def symbolic_int(shape_env: ShapeEnv, value: int, name: str) -> torch.SymInt | int:
    """A dynamic Python int as a backed symbol."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    return shape_env.create_unspecified_symint_and_symbol(value, source(name), DimDynamic.DYNAMIC)


def shape_guards(shape_env: Any, placeholders: Sequence[object], names: Sequence[str]) -> list[str]:
    """Python expressions over ``names`` for all assumptions of the shape environment about the placeholders."""
    pairs = [(p, source(n)) for p, n in zip(placeholders, names, strict=True) if isinstance(p, torch.Tensor | torch.SymInt)]
    if not any(is_symbolic(p) for p, _ in pairs):
        return []
    guards = [str(g) for g in shape_env.produce_guards([p for p, _ in pairs], [s for _, s in pairs], ignore_static=True)]
    # ``ignore_static`` omits every size that is now a number, including symbols that were specialized.
    for symbol, sources in shape_env.var_to_sources.items():
        value = shape_env.replace(symbol)
        if value.is_number:
            guards += [f"{s.name} == {value}" for s in sources]
    return guards


def is_symbolic(value: object) -> bool:
    """Whether a value is a symbolic int, or a tensor with symbolic sizes."""
    return isinstance(value, torch.SymInt) or (isinstance(value, torch.Tensor) and bool(value._has_symbolic_sizes_strides))


def is_fake(value: object) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)


def sym_expression(size: Any) -> Any:
    """The sympy expression of a SymInt, None for a plain int."""
    return size.node.expr if isinstance(size, torch.SymInt) else None


def assumptions(shape_env: Any, start: int) -> list[Any]:
    """The sympy relations that a shape environment has assumed, from index ``start`` on: the branches that torch's shape
    functions took depending on sizes."""
    return [guard.expr for guard in shape_env.guards[start:]]


def hint_of(size: Any) -> int | None:
    """The value of a size when it was computed; None if it is data-dependent."""
    if isinstance(size, torch.SymInt):
        return size.node.hint if size.node.has_hint() else None
    return int(size)
