"""Backends by name, failures as findings, and the program's torch state after a compile."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
import torch
import torch.fx
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from magpy_core.backends import UnknownBackend, get_backend
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.findings import Unsupported
from tests.unit.backends.recorder import compile_recorded, record

COMPILING = ["aot_eager", "inductor"]
BACKENDS = ["eager", *COMPILING]


def test_an_unknown_name_lists_the_known_ones_and_the_close_one() -> None:
    with pytest.raises(UnknownBackend) as caught:
        get_backend("inductr")
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == (
        "'inductr' is not a backend; known backends: eager, aot_eager, inductor. Did you mean 'inductor'?"
    )
    with pytest.raises(UnknownBackend, match="known backends") as far:
        get_backend("xyz")
    assert "Did you mean" not in str(far.value)


def test_every_name_gives_its_backend() -> None:
    assert [get_backend(name).name for name in BACKENDS] == BACKENDS == UnknownBackend("").names


def breaks(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("no such kernel\nand a long tail")


@pytest.mark.parametrize("backend", COMPILING)
def test_a_failing_compile_is_one_finding_of_one_sentence(backend: str) -> None:
    graph = torch.fx.Graph()
    graph.output((graph.call_function(breaks, (graph.placeholder("x"),)),))
    with pytest.raises(Unsupported) as caught:
        compile_recorded(torch.fx.GraphModule({}, graph), [torch.ones(2)], backend)
    assert caught.value.code == "MP902"
    assert caught.value.message == f"The backend {backend} can't compile the graph: ValueError: no such kernel"


class Doubling(torch.overrides.TorchFunctionMode):
    """A user's mode: it must see the program's calls and none of the compiler's."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def state() -> dict[str, Any]:
    return {
        "rng": torch.get_rng_state().tolist(),
        "python": random.getstate(),
        "grad": torch.is_grad_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()),
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "modes": len(torch.overrides._get_current_function_mode_stack()),
        "threads": torch.get_num_threads(),
        "inference": torch.is_inference_mode_enabled(),
    }


@pytest.mark.parametrize("fails", [False, True], ids=["compiles", "fails"])
@pytest.mark.parametrize("backend", COMPILING)
def test_the_torch_state_is_the_same_after_a_compile(backend: str, fails: bool) -> None:
    gm, inputs = record(lambda x: torch.nn.functional.dropout(torch.rand_like(x) + x.sin(), 0.5), torch.randn(4, 4))
    if fails:
        last = next(iter(reversed(gm.graph.nodes)))
        with gm.graph.inserting_before(last):
            gm.graph.call_function(torch._C._set_grad_enabled, (True,))
            gm.graph.call_function(torch.amp.autocast_mode._enter_autocast, ("cpu", torch.float16, True, True))
            gm.graph.call_function(breaks, (last.args[0][0],))
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16), Doubling() as mode:
            before, calls = state(), mode.calls
            if fails:
                with pytest.raises(Unsupported):
                    compile_recorded(gm, inputs, backend)
            else:
                compile_recorded(gm, inputs, backend)
            seen = mode.calls - calls
            assert state() == before
        assert seen == 0
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("backend", COMPILING)
def test_it_compiles_and_runs_under_inference_mode(backend: str) -> None:
    layer = torch.nn.Linear(3, 3)
    with torch.inference_mode():
        gm, inputs = record(layer, torch.ones(2, 3))
        compiled = compile_recorded(gm, inputs, backend)
        (out,) = compiled.fn(*inputs)
        assert out.is_inference()
        torch.testing.assert_close(out, layer(torch.ones(2, 3)))


@pytest.mark.parametrize("backend", COMPILING)
def test_threads_take_turns(backend: str) -> None:
    """As the engine has them do: torch keeps in one place for all threads whether a dispatch mode is in force, as while
    a graph is compiled, and in the first call of what AOTAutograd has compiled."""
    failures: list[BaseException] = []
    turn = threading.Lock()

    def work(k: int) -> None:
        try:
            gm, inputs = record(lambda x: (x * k).cos() + k, torch.randn(3, k))
            with turn:
                compiled = compile_recorded(gm, inputs, backend).fn
                torch.testing.assert_close(compiled(*inputs)[0], gm.forward(*inputs)[0])
            torch.testing.assert_close(compiled(*inputs)[0], gm.forward(*inputs)[0])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == [] and not is_in_torch_dispatch_mode()


@pytest.mark.parametrize("backend", COMPILING)
def test_the_default_device_of_the_compile_is_the_graphs(backend: str) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.ones, (3,)), graph.call_function(torch.zeros, (2,), {"device": "cpu"}), x))
    with torch.device("meta"):
        compiled = compile_recorded(torch.fx.GraphModule({}, graph), [torch.zeros(1, device="cpu")], backend)
        made = compiled.fn(torch.zeros(1, device="cpu"))
    assert [t.device.type for t in made] == ["meta", "cpu", "cpu"]


@pytest.mark.parametrize("backend", COMPILING)
def test_backward_twice_through_one_forward(backend: str) -> None:
    x = torch.randn(3, requires_grad=True)
    gm, inputs = record(lambda x: (x * 2).exp().sin(), x)
    out = compile_recorded(gm, inputs, backend).fn(*inputs)[0].sum()
    out.backward(retain_graph=True)
    first = x.grad.clone() if x.grad is not None else None
    out.backward()
    torch.testing.assert_close(x.grad, first * 2 if first is not None else None)


def test_memory_outside_the_tensor_is_refused() -> None:
    gm, inputs = record(lambda x: x.as_strided((2,), (1,), 1) + 1, torch.randn(4))
    with pytest.raises(Unsupported, match="`as_strided` with a storage offset"):
        compile_recorded(gm, inputs, "aot_eager")


@pytest.mark.torch_compile
def test_it_lives_beside_torch_compile() -> None:
    theirs = torch.compile(lambda x: x.sin() + 1, backend="aot_eager")
    x = torch.randn(3)
    want = theirs(x)
    gm, inputs = record(lambda x: x.cos() * 2, x)
    torch.testing.assert_close(compile_recorded(gm, inputs, "aot_eager").fn(*inputs)[0], x.cos() * 2)
    torch.testing.assert_close(theirs(x), want)


def test_the_recorded_graph_is_left_as_it_was() -> None:
    gm, inputs = record(lambda x: x.mul_(2).relu(), torch.randn(3))
    before = gm.code
    for name in BACKENDS:
        compile_recorded(gm, inputs, name)
    assert gm.code == before


def test_a_float_where_no_tensor_can_go_is_refused_by_name() -> None:
    graph = torch.fx.Graph()
    x, p = graph.placeholder("x"), graph.placeholder("p")
    p.meta["magpy_scalar"] = float
    graph.output((graph.call_function(torch.nn.functional.dropout, (x, p)),))
    with pytest.raises(Unsupported, match="dropout takes a Python float that varies"):
        compile_recorded(torch.fx.GraphModule({}, graph), [torch.ones(3), 0.5], "aot_eager")


def test_an_input_without_a_fake_counterpart_is_refused() -> None:
    with pytest.raises(Unsupported) as caught:
        make_fake_inputs([torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)])
    assert caught.value.code == "MP902"
