"""What compiling for a device that is not there needs of torch and Triton. Each test says what a new version broke."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from magpy_core._compat.torch import kernel_work, triton_device, triton_lowering
from magpy_core._compat.torch.fusion import note_reasons
from magpy_core._compat.torch.kernel_work import operator, places, product_flops, tensor_bytes, trace_text
from magpy_core._compat.torch.triton_device import DeviceFigures
from magpy_core.products.targets.worker import WorkerFailed, results_of

H100 = DeviceFigures("H100", (9, 0), 132, 65_536, 2_048, 32, 232_448, 80 << 30)


def in_process(work: Any) -> Any:
    """The result of ``work`` in a forked process: a stand-in stays until the process ends."""
    ((_, result),) = results_of([work])
    assert not isinstance(result, WorkerFailed), result
    return result


def test_fake_tensors_of_the_device_can_be_indexed() -> None:
    """torch's table of device guards has its symbol, and the positions of CUDA and of meta tensors."""

    def work() -> list[Any]:
        from torch._subclasses.fake_tensor import FakeTensorMode

        triton_device.guard_without_device()
        with FakeTensorMode():
            value = torch.empty(4, 3, device=triton_device.CUDA)[1]
        return [str(value.device), list(value.shape)]

    assert in_process(work) == ["cuda:0", [3]]


def test_a_missing_table_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_device, "_GUARD_TABLE", "no_such_symbol")
    with pytest.raises(triton_device.StandInFailed, match="not where it is expected"):
        triton_device.guard_without_device()


def test_torch_and_inductor_see_the_device() -> None:
    pytest.importorskip("triton")

    def work() -> list[Any]:
        from torch.utils._triton import has_triton

        has_triton()  # torch keeps the answer
        triton_device.stand_in(H100)
        import triton
        from torch._inductor.runtime.hints import DeviceProperties

        assert has_triton()
        seen = DeviceProperties.create(triton_device.CUDA)
        target = triton.runtime.driver.active.get_current_target()
        return [seen.cc, seen.multi_processor_count, seen.warp_size, target.backend, target.arch, torch.cuda.is_available()]

    assert in_process(work) == [90, 132, 32, "cuda", 90, True]


def test_inductor_has_what_is_watched() -> None:
    """Kernels are noted where a scheduling defines them, library calls where the scheduler writes them."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.codegen.triton import TritonScheduling
    from torch._inductor.fx_passes import fuse_attention
    from torch._inductor.scheduler import Scheduler

    assert list(inspect.signature(TritonScheduling.define_kernel).parameters) == [
        "self",
        "src_code",
        "node_schedule",
        "kernel",
    ]
    assert list(inspect.signature(Scheduler.codegen_extern_call).parameters) == ["self", "scheduler_node"]
    assert "load_by_key_path" in PyCodeCache.__dict__ and callable(fuse_attention._sfdp_init)


def test_the_scheduler_has_what_is_known_of_fusion() -> None:
    from torch._inductor.ir import IRNode
    from torch._inductor.scheduler import BaseSchedulerNode, NodeUser, Scheduler, SchedulerBuffer

    assert list(inspect.signature(Scheduler.codegen).parameters) == ["self"]
    assert {"get_aliases", "get_mutations", "defining_op_name"} <= set(dir(SchedulerBuffer))
    assert {"get_nodes", "get_buffer_names", "is_foreach", "get_name"} <= set(dir(BaseSchedulerNode))
    assert {"node", "is_weak"} <= set(NodeUser.__dataclass_fields__) and hasattr(IRNode, "has_tensor_output")


def test_reasons_are_noted_by_pair_until_the_end() -> None:
    from torch._inductor.scheduler import WhyNoFuse

    reasons: dict[tuple[str, str], str] = {}
    before = WhyNoFuse.__call__
    why: Any = WhyNoFuse(SimpleNamespace(get_name=lambda: "op0"), SimpleNamespace(get_name=lambda: "op1"))  # type: ignore[arg-type]
    with ExitStack() as stack:
        note_reasons(stack, reasons)
        why("no shared data")
        why("numel mismatch (%s, %s)", 3, 4)
    why("later")
    assert reasons == {("op0", "op1"): "numel mismatch (3, 4)"} and WhyNoFuse.__call__ is before


def test_an_operation_without_a_place_has_that_of_its_users() -> None:
    graph = torch.fx.Graph()
    first = graph.call_function(torch.ops.aten.exp.default, (graph.placeholder("x"),))
    second = graph.call_function(torch.ops.aten.log.default, (first,))
    second.meta["stack_trace"] = trace_text("m.py", 3)
    assert places([first]) == (("m.py", 3),) and places([first.args[0]]) == ()  # type: ignore[list-item]


def test_inductor_has_the_options_that_are_set() -> None:
    from torch._inductor import config

    known = config.get_config_copy()
    names = ("joint_custom_pre_pass", "fx_graph_cache", "compile_threads", "cpp.simdlen", "shape_padding", "combo_kernels")
    assert not [name for name in names if name not in known]


def test_the_table_of_decompositions_has_what_is_replaced() -> None:
    from torch._inductor.decomposition import select_decomp_table

    aten = torch.ops.aten
    assert {aten.bernoulli_.float, aten.bernoulli_.Tensor, aten.bernoulli.p} <= set(select_decomp_table())


def test_the_assembler_is_in_the_package() -> None:
    pytest.importorskip("triton")
    assert triton_device.has_triton()
    assert all(triton_device.assembler(capability).exists() for capability in ((8, 0), (9, 0), (10, 0)))


def test_kernels_are_read_from_a_module() -> None:
    module = "a = async_compile.triton('k_0', '''\nimport triton\n''', device_str='cuda')\nb = 1\n"
    assert triton_lowering.sources(module) == {"k_0": "\nimport triton\n"}


def test_products_have_formulas() -> None:
    graph = torch.fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    a.meta["val"], b.meta["val"] = torch.empty(4, 8), torch.empty(8, 16)
    product = graph.call_function(torch.ops.aten.mm.default, (a, b))
    product.meta["val"] = torch.empty(4, 16)
    assert product_flops(product) == 2 * 4 * 8 * 16
    total = graph.call_function(torch.ops.aten.sum.default, (product,))
    assert product_flops(total) == 0


@pytest.mark.parametrize(("allowed", "dtype"), [(True, "tf32"), (False, "float32")])
def test_convolutions_use_tensor_cores_unless_forbidden(allowed: bool, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = torch.fx.Graph()
    for target, expected in ((torch.ops.aten.convolution.default, dtype), (torch.ops.aten.mm.default, "float32")):
        node = graph.call_function(target, ())
        node.meta["val"] = torch.empty(2)
        monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", allowed)
        assert kernel_work.product_dtype(node) == expected


def test_expanded_tensors_take_no_more_memory() -> None:
    assert tensor_bytes(torch.empty(8).expand(4, 8)) == 32
    assert tensor_bytes((torch.empty(2, dtype=torch.int64), None, [torch.empty(3, dtype=torch.bool)])) == 19


def test_operators_have_short_names() -> None:
    assert operator(torch.ops.aten.add.Tensor) == "add" and operator(torch.add) == "add"


def test_places_come_back_from_traces() -> None:
    node = torch.fx.Graph().placeholder("x")
    node.meta["stack_trace"] = trace_text("/a b/m.py", 12)
    assert places([node, torch.fx.Graph().placeholder("y")]) == (("/a b/m.py", 12),)
    assert kernel_work.places([]) == ()
