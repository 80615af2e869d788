"""Fake tensors and symbolic shapes behind named functions.

The private modules wrapped here (`torch._subclasses`, `torch.fx.experimental.symbolic_shapes`, `torch._dynamo.source`)
are what TorchDynamo itself uses to hand example inputs to a backend. Key functions: `new_fake_mode`, `fakify`,
`symbolic_int`, `shape_guards`; of symbolic sizes `sym_expression`, `assumptions`, `hint_of`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Symbolic shapes import sympy, most of a second: the functions below import them when the first graph is made.
if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv


@cache
def guard_namespace() -> dict[str, Any]:
    """Names that a guard expression may use besides the list of inputs."""
    from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

    return dict(SYMPY_INTERP)


def new_fake_mode(*, dynamic: bool) -> tuple[FakeTensorMode, ShapeEnv]:
    """A fake mode with a shape environment of its own; ``dynamic`` allows data-dependent sizes in it."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    shape_env = ShapeEnv(duck_shape=False, allow_scalar_outputs=dynamic, allow_dynamic_output_shape_ops=dynamic)
    return FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True), shape_env


@contextlib.contextmanager
def symbolic_shapes() -> Iterator[None]:
    """Composite operations take their Python forms, which carry symbols where the C++ ones want plain ints; and nothing is
    printed where neither does."""
    from torch._dispatch.python import enable_python_dispatcher

    with enable_python_dispatcher(), no_meta_logs():
        yield


@contextlib.contextmanager
def no_meta_logs() -> Iterator[None]:
    """torch prints a traceback where a shape function has no way with symbols; it raises too, which is answered here."""

    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addFilter(dropped := lambda record: False)
    try:
        yield
    finally:
        log.removeFilter(dropped)


class WritesReal(RuntimeError):
    """What runs on fake tensors was about to change a real one."""


class RealLeftAlone(TorchDispatchMode):
    """For the program's own code (a custom function, a script) on fake tensors. It may change tensors that no one gave it as
    fakes, and a fake mode runs an operation on real tensors alone for real: WritesReal is raised before that (an interpreter
    of scripts makes another error of it), and ``stopped`` tells of it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stopped = False
        self._functions = _FunctionsLeftAlone(self)

    def __enter__(self) -> RealLeftAlone:
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
            raise WritesReal(what)


_MEMORY = frozenset({
    "numpy", "__array__", "storage", "untyped_storage", "_typed_storage", "data_ptr", "__dlpack__", "swap_tensors",
    "backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "__setstate__",
})  # fmt: skip
"""What no operator is made of and may change a tensor, or hands its memory out to be changed."""


class _FunctionsLeftAlone(TorchFunctionMode):
    def __init__(self, watch: RealLeftAlone) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _MEMORY or name in ("__set__", "__delete__") or (name.endswith("_") and not name.startswith("_")):
            self.watch.check(name, (*args, *(kwargs or {}).values()))
        return func(*args, **(kwargs or {}))


def source(name: str) -> Any:
    """A guard source printed as the Python expression ``name``."""
    from torch._dynamo.source import ConstantSource

    return ConstantSource(name)


def fakify(mode: FakeTensorMode, tensor: torch.Tensor, name: str, dynamic_dims: set[int]) -> FakeTensor:
    """The fake of one real tensor; the mode's memo keeps storage shared between fakes whose tensors share it."""
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
    """A Python int that varies from call to call, as a backed symbol."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    return shape_env.create_unspecified_symint_and_symbol(value, source(name), DimDynamic.DYNAMIC)


def shape_guards(shape_env: Any, placeholders: Sequence[object], names: Sequence[str]) -> list[str]:
    """Python expressions over ``names`` for everything the shape environment assumed about the placeholders."""
    pairs = [(p, source(n)) for p, n in zip(placeholders, names, strict=True) if isinstance(p, torch.Tensor | torch.SymInt)]
    if not any(is_symbolic(p) for p, _ in pairs):
        return []
    guards = [str(g) for g in shape_env.produce_guards([p for p, _ in pairs], [s for _, s in pairs], ignore_static=True)]
    # ``ignore_static`` leaves out every size that is a number now, so also those that were symbols until they were fixed.
    for symbol, sources in shape_env.var_to_sources.items():
        value = shape_env.replace(symbol)
        if value.is_number:
            guards += [f"{s.name} == {value}" for s in sources]
    return guards


def is_symbolic(value: object) -> bool:
    """Whether a value is a varying int, or a tensor with varying sizes."""
    return isinstance(value, torch.SymInt) or (isinstance(value, torch.Tensor) and bool(value._has_symbolic_sizes_strides))


def is_fake(value: object) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)


def sym_expression(size: Any) -> Any:
    """The sympy expression of a SymInt, None for a plain int."""
    return size.node.expr if isinstance(size, torch.SymInt) else None


def assumptions(shape_env: Any, start: int) -> list[Any]:
    """The sympy relations that a shape environment has taken for true, from the one with index ``start`` on: which way
    torch's own shape functions went where that depends on sizes."""
    return [guard.expr for guard in shape_env.guards[start:]]


def hint_of(size: Any) -> int | None:
    """The number a size stood for when it was computed; None where only data says."""
    if isinstance(size, torch.SymInt):
        return size.node.hint if size.node.has_hint() else None
    return int(size)
