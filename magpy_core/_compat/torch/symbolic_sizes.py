"""Compiled code stays valid for sizes that vary, where torch could compile such code.

Some of Inductor's lowerings read sizes or strides as numbers, to choose a kernel or an order of dimensions, and add guards
that hold for these sizes only. AOTAutograd expects each size to be an input of the graph; MagPy's graphs get tensors only.
Key functions: sizes_stay_symbolic, lowered_for_all_sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.fx

aten = torch.ops.aten
#: Operators with a lowering that makes numbers of the sizes of its inputs; torch's own kernel takes any.
_FIX_SIZES: tuple[Any, ...] = (
    aten.convolution_backward.default,
    aten._adaptive_avg_pool2d.default,
    aten.adaptive_max_pool2d.default,
    aten.upsample_nearest2d_backward.default,
)


@contextmanager
def sizes_stay_symbolic(shape_env: Any) -> Iterator[None]:
    """While AOTAutograd traces a graph: strides of what the forward graph saves are expressions in the backward graph, which
    gets all sizes that it needs."""
    from torch._functorch import partitioners
    from torch._functorch._aot_autograd import graph_compile

    if shape_env is not None:
        shape_env.evaluate_symexpr = shape_env.deserialize_symexpr
    bindings: Any = partitioners.find_symbol_binding_fx_nodes  # type: ignore[attr-defined]
    partitioners.find_symbol_binding_fx_nodes = lambda graph: _with_sizes(graph, bindings(graph))  # type: ignore[attr-defined]
    name = "_apply_tensorify_python_scalars"
    tensorify: Callable[[torch.fx.GraphModule], None] | None = getattr(graph_compile, name, None)
    if tensorify is not None:
        setattr(graph_compile, name, _if_it_knows_all_sizes(tensorify))
    try:
        yield
    finally:
        partitioners.find_symbol_binding_fx_nodes = bindings  # type: ignore[attr-defined]
        if tensorify is not None:
            setattr(graph_compile, name, tensorify)


@contextmanager
def lowered_for_all_sizes() -> Iterator[None]:
    """While Inductor compiles a graph: operators that would fix a symbolic size are calls of torch's own kernels, and sums
    of symbolic numbers of elements are computed in one way."""
    from torch._inductor import lowering
    from torch._inductor.codegen.cpp import CppKernel

    known: dict[Any, Any] = lowering.lowerings
    before = {operator: known[operator] for operator in _FIX_SIZES if operator in known}
    known.update({operator: _kernel_for_symbols(operator, lower) for operator, lower in before.items()})
    sums: Any = CppKernel.need_use_acc_helper
    CppKernel.need_use_acc_helper = _exact_for_symbols(sums)  # type: ignore[method-assign]
    try:
        yield
    finally:
        known.update(before)
        CppKernel.need_use_acc_helper = sums  # type: ignore[method-assign]


def _kernel_for_symbols(operator: Any, lower: Callable[..., Any]) -> Callable[..., Any]:
    from torch._inductor import lowering
    from torch._inductor.ir import IRNode
    from torch._inductor.virtualized import V

    kernel = lowering.fallback_handler(operator, add_to_fallback_set=False)

    def lowered(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        sizes = [size for value in given if isinstance(value, IRNode) for size in value.get_size()]
        sizes += [size for value in given if isinstance(value, list | tuple) for size in value]
        if all(size is None or isinstance(size, int | float) or _expression(size).is_number for size in sizes):
            return lower(*args, **kwargs)
        args, kwargs = lowering.constrain_to_fx_strides(V.graph.current_node, *args, **kwargs)
        return kernel(*args, **kwargs)

    return lowered


def _expression(size: Any) -> Any:
    from torch._inductor.virtualized import V

    return V.graph.sizevars.simplify(size)


def _exact_for_symbols(is_needed: Callable[..., bool]) -> Callable[..., bool]:
    """The sum of a symbolic number of elements is one of partial sums, as that of many is: no guard tells few from many."""

    def decide(kernel: Any, reduction_type: str, dtype: torch.dtype, use_scalar: bool) -> bool:
        summed = kernel.call_ranges[kernel.reduction_depth :]
        if reduction_type == "sum" and dtype == torch.float and not all(_expression(size).is_number for size in summed):
            return True
        return is_needed(kernel, reduction_type, dtype, use_scalar)

    return decide


def _if_it_knows_all_sizes(tensorify: Callable[[torch.fx.GraphModule], None]) -> Callable[[torch.fx.GraphModule], None]:
    def apply(module: torch.fx.GraphModule) -> None:
        values = [value.node.expr for node in module.graph.nodes if _is_symbolic(value := node.meta.get("val"))]
        known = set(values)
        if all(symbol in known for value in values for symbol in value.free_symbols):
            tensorify(module)

    return apply


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _with_sizes(graph: torch.fx.Graph, found: dict[Any, torch.fx.Node]) -> dict[Any, torch.fx.Node]:
    """The nodes that stand for symbols, with those of sizes that the backward graph may be unable to find out: a tensor that
    is saved for it may have `s + 1` rows, and no other has `s`."""
    shapes = [value.shape for node in graph.nodes if isinstance(value := node.meta.get("val"), torch.Tensor)]
    symbolic: list[Any] = [size for shape in shapes for size in shape if isinstance(size, torch.SymInt)]
    sizes = [size.node.expr for size in symbolic]
    wanted = {symbol for size in sizes if not size.is_Symbol for symbol in size.free_symbols} - set(found)
    inputs = graph.find_nodes(op="placeholder")
    for node in inputs if wanted else ():
        if "tangents" in str(node.target):  # the forward graph, which saves the sizes, does not have them
            continue
        for dim, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
            if isinstance(size, torch.SymInt) and size.node.expr in wanted:
                with graph.inserting_after(inputs[-1]):
                    made = graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
                made.meta["val"] = size
                found[size.node.expr] = made
                wanted.discard(size.node.expr)
    return found
