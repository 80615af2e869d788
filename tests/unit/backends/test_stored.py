"""Compiled graphs are stored, and loaded without torch's compilers; what might not be the same code is not stored."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.fx

import magpy_core
from magpy_core.backends import cache, stored
from magpy_core.backends.stored.graph import StoredGraph
from magpy_core.backends.stored.key import key_of
from magpy_core.backends.tuning import DEFAULT, Tuning
from magpy_core.regions.api import region_of
from magpy_core.verification import Verdict

Graph = Callable[[torch.fx.Graph, torch.fx.Node], Any]


def graph_of(operation: Graph) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    result = operation(graph, graph.placeholder("x"))
    graph.output((result,))
    root = torch.nn.Module()
    root.weight = torch.nn.Parameter(torch.ones(3))
    return torch.fx.GraphModule(root, graph)


def added(graph: torch.fx.Graph, x: torch.fx.Node) -> Any:
    return graph.call_function(torch.add, (x, 1.0))


def key(operation: Graph = added, *inputs: Any, dims: dict[int, set[int]] | None = None, **settings: Any) -> str | None:
    given = inputs or (torch.ones(2, 3),)
    known = {"same_random": False, "tuning": DEFAULT, "checked": False}
    return key_of(graph_of(operation), given, dims or {}, **{**known, **settings})


def noted(graph: torch.fx.Graph, x: torch.fx.Node, what: str, value: Any) -> Any:
    node = added(graph, x)
    node.meta[what] = value
    return node


class Rate(float):
    pass


class Wrapped(torch.Tensor):
    pass


def own_function(x: Any) -> Any:
    return x + 1


X = torch.ones(2, 3)
OTHERS: dict[str, Callable[[], str | None]] = {
    "another constant": lambda: key(lambda g, x: g.call_function(torch.add, (x, 2.0))),
    "a constant of another type": lambda: key(lambda g, x: g.call_function(torch.add, (x, 1))),
    "another operation": lambda: key(lambda g, x: g.call_function(torch.sub, (x, 1.0))),
    "a method": lambda: key(lambda g, x: g.call_method("add", (x, 1.0))),
    "a list": lambda: key(lambda g, x: g.call_function(torch.sum, (x, [0, 1]))),
    "a tuple": lambda: key(lambda g, x: g.call_function(torch.sum, (x, (0, 1)))),
    "a checkpoint": lambda: key(lambda g, x: noted(g, x, "magpy_checkpoint", 1)),
    "another checkpoint": lambda: key(lambda g, x: noted(g, x, "magpy_checkpoint", 2)),
    "another result type": lambda: key(lambda g, x: noted(g, x, "magpy_tensor", (torch.float64, (2, 3)))),
    "another size": lambda: key(added, torch.ones(2, 4)),
    "other strides": lambda: key(added, torch.ones(3, 2).t()),
    "another dtype": lambda: key(added, X.double()),
    "gradients": lambda: key(added, X.clone().requires_grad_()),
    "a result under autograd": lambda: key(added, X.clone().requires_grad_() * 1),
    "a parameter": lambda: key(added, torch.nn.Parameter(X)),
    "a parameter at an offset": lambda: key(added, torch.nn.Parameter(torch.ones(4, 3)[2:])),
    "a size that varies": lambda: key(added, X, dims={0: {0}}),
    "another size that varies": lambda: key(added, X, dims={0: {1}}),
    "a float": lambda: key(added, 2.5),
    "an int": lambda: key(added, 2),
    "a bool": lambda: key(added, True),
    "random numbers": lambda: key(same_random=True),
    "checked sizes": lambda: key(checked=True),
    "a tuning": lambda: key(tuning=Tuning(mode="max")),
}


def test_what_code_depends_on_is_in_the_key() -> None:
    keys = {name: make() for name, make in OTHERS.items()} | {"it": key()}
    assert None not in keys.values()
    assert len(set(keys.values())) == len(keys), keys


def test_what_no_code_depends_on_is_not_in_the_key() -> None:
    assert key(lambda g, x: noted(g, x, "magpy_site", object())) == key()
    assert key(added, 2.5) == key(added, 3.5) and key(added, 2) == key(added, 3)
    assert key(added, torch.ones(5, 3), dims={0: {0}}) == key(added, X, dims={0: {0}})
    assert key(added, torch.ones(4, 3)[2:]) == key()  # at an offset
    sized = [key(lambda g, x, n=n: noted(g, x, "magpy_tensor", (torch.float32, (n, 3)))) for n in (2, 5)]
    assert sized[0] == sized[1]


REFUSED: dict[str, Callable[[], str | None]] = {
    "a function of the program": lambda: key(lambda g, x: g.call_function(own_function, (x,))),
    "a lambda": lambda: key(lambda g, x: g.call_function(lambda x: x, (x,))),
    "another object": lambda: key(lambda g, x: g.call_function(torch.add, (x, Rate(2.0)))),
    "an attribute": lambda: key(lambda g, x: g.create_node("get_attr", "weight")),
    "an unknown fact": lambda: key(lambda g, x: noted(g, x, "magpy_unheard_of", object())),
    "a subclass": lambda: key(added, X.as_subclass(Wrapped)),
    "a view that is differentiated": lambda: key(added, (X.clone().requires_grad_() * 1)[0]),
    "sparse": lambda: key(added, X.to_sparse()),
    "another device": lambda: key(added, X.to("meta")),
    "shared memory": lambda: key_of(
        graph_of(added), (X, X.view(6)), {}, same_random=False, tuning=DEFAULT, checked=False
    ),
    "a permuted tensor whose sizes vary": lambda: key(added, torch.ones(3, 2).t(), dims={0: {0}}),
    "options": lambda: key(tuning=Tuning(options=(("max_autotune", True),))),
}  # fmt: skip


@pytest.mark.parametrize("what", list(REFUSED))
def test_what_may_be_other_code_in_another_process_has_no_key(what: str) -> None:
    assert REFUSED[what]() is None


def test_a_function_in_place_of_torchs_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    silu = torch.nn.functional.silu
    assert key(lambda g, x: g.call_function(silu, (x,))) is not None
    monkeypatch.setattr(torch.nn.functional, "silu", functools.wraps(silu)(own_function))
    assert key(lambda g, x: g.call_function(torch.nn.functional.silu, (x,))) is None


def test_a_custom_operator_has_no_key() -> None:
    with torch.library._scoped_library("magpy_test_stored", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        operation = torch.ops.magpy_test_stored.twice.default
        assert key(lambda g, x: g.call_function(operation, (x,))) is None


# -- stored and loaded ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "magpy" / "inductor"


def test_a_stored_graph_is_called_like_the_compiled_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[str] = []
    save = stored.save
    monkeypatch.setattr(stored, "save", lambda key, compiled: saved.append(key) or save(key, compiled))
    compilations: list[Any] = []

    def step() -> Any:
        weight, seen = torch.full((3,), 0.5, requires_grad=True), torch.zeros(3)

        def run(x: torch.Tensor, rate: float) -> torch.Tensor:
            seen.add_(x)
            loss = (weight * x).sin().sum()
            (gradient,) = torch.autograd.grad(loss, weight)
            with torch.no_grad():
                weight.sub_(gradient, alpha=rate)
            return loss.detach()

        return run, weight, seen

    def results() -> list[Any]:
        run, weight, seen = step()
        compiled = magpy_core.compile(run, wait=True)
        found = [compiled(torch.full((3,), i / 4), 0.1 * i).item() for i in range(5)]
        compilations.append(region_of(compiled).captures)
        assert region_of(compiled).hits >= 3, region_of(compiled).findings
        return [found, weight.tolist(), seen.tolist(), weight._version, seen._version]

    first = results()
    assert saved and (folder / "graphs" / f"{saved[0]}.json").stat().st_mode & 0o077 == 0o044 & ~os.umask(0)
    count, compile_again = len(saved), pytest.MonkeyPatch()
    from magpy_core._compat.torch import inductor

    compile_again.setattr(inductor, "inductor_compile", lambda *args, **kwargs: pytest.fail("it was compiled again"))
    try:
        assert results() == first
    finally:
        compile_again.undo()
    assert len(saved) == count
    plain, weight, seen = step()
    assert [plain(torch.full((3,), i / 4), 0.1 * i).item() for i in range(5)] == pytest.approx(first[0])
    assert weight.tolist() == pytest.approx(first[1]) and seen.tolist() == first[2] and seen._version == first[4]

    for file in (folder / "graphs").glob("*.json"):  # one that was changed is compiled again
        file.write_text(file.read_text().replace("def call", "def  call"))
    assert results() == first and len(saved) == 2 * count
    for file in folder.rglob("*.so"):  # and one whose libraries are gone
        file.unlink()
    assert all(stored.load(one, [torch.ones(3), torch.ones(3), torch.ones(3), 0.1]) is None for one in saved)


def _decode(layer: torch.nn.Linear, state: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
    ended, words = torch.zeros(3, dtype=torch.bool), []
    for _ in range(6):
        state = torch.tanh(layer(state))
        words.append(state.argmax(-1))
        ended |= words[-1] % 3 == 0
        if ended.all():
            break
    return words, ended


def test_equal_parts_of_a_graph_are_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them returns a tensor that it writes."""
    saved: list[str] = []
    save = stored.save
    monkeypatch.setattr(stored, "save", lambda key, compiled: saved.append(key) or save(key, compiled))
    torch.manual_seed(0)
    layer, states = torch.nn.Linear(8, 8), torch.randn(4, 3, 8)
    compiled = magpy_core.compile(_decode, wait=True)
    with torch.no_grad():
        longest = next(state for state in states if len(_decode(layer, state)[0]) == 6)
        for _ in range(10):  # the first few show whether it takes other paths
            words, ended = compiled(layer, longest)
        expected, all_ended = _decode(layer, longest)
    assert torch.equal(torch.stack(words), torch.stack(expected)) and torch.equal(ended, all_ended)
    (capture,) = region_of(compiled).captures
    assert capture.hits > 2 and len(capture.segments) == 7
    assert len(saved) == len(set(saved)) == 3, "the first one, those in the middle, and the last one"


def outcome(use: Callable[[], Any]) -> Any:
    try:
        return use()
    except RuntimeError as error:
        return str(error).splitlines()[0]


def _summed(f: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    f(x, w)[0].sum().backward()  # the gradient has strides of zero


def _twice(f: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    y = f(x, w)[0]
    y.square().sum().backward(retain_graph=True)
    y.t().contiguous().t().backward(torch.arange(12.0).view(4, 3).t())


def _freed(f: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    y = f(x, w)[0].sum()
    y.backward()
    y.backward()


def _modified(f: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    y = f(x, w)[0].sum()
    with torch.no_grad():
        w.add_(1)
    y.backward()


def _deterministic(f: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
    y = f(x, w)[0].sum()
    torch.use_deterministic_algorithms(True)
    try:
        y.backward()
    finally:
        torch.use_deterministic_algorithms(False)


USES = [_summed, _twice, _freed, _modified]


def test_a_stored_graph_is_differentiated_like_the_compiled_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = (x @ w).sin()
        return y * 2, y.detach() > 0

    def results(target: Any) -> list[Any]:
        found = []
        for use in USES:
            x, w = torch.arange(6.0).view(3, 2), torch.full((2, 4), 0.5, requires_grad=True)
            found += [outcome(lambda use=use, x=x, w=w: use(target, x, w)), None if w.grad is None else w.grad.tolist()]
        y, positive = target(x, w)
        return [*found, y.tolist(), positive.tolist(), y.requires_grad, positive.requires_grad]

    def compiled() -> Any:
        made = magpy_core.compile(f, wait=True)
        made(torch.ones(3, 2), torch.ones(2, 4, requires_grad=True))
        made(torch.ones(3, 2), torch.ones(2, 4, requires_grad=True))
        return made

    target = compiled()
    first, deterministic = results(target), outcome(lambda: _deterministic(target, *_given()))
    assert len(list((folder / "graphs").glob("*.json"))) == 1
    from magpy_core._compat.torch import inductor

    monkeypatch.setattr(inductor, "inductor_compile", lambda *args, **kwargs: pytest.fail("it was compiled again"))
    loaded = compiled()
    assert results(loaded) == first and outcome(lambda: _deterministic(loaded, *_given())) == deterministic
    assert region_of(loaded).hits == region_of(target).hits > 5
    for ours, eager in zip(first, results(f), strict=True):
        assert ours == eager or isinstance(ours, str) or ours == [pytest.approx(row) for row in eager]
    assert [isinstance(one, str) for one in first] == [isinstance(one, str) for one in results(f)]


def _given() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(3, 2), torch.ones(2, 4, requires_grad=True)


def test_damage_and_other_sizes_are_as_good_as_nothing(folder: Path) -> None:
    assert cache.folder() == folder
    assert stored.load("0" * 64, []) is None
    data = {"units": [], "text": "", "arity": 1, "freed": [0], "numbers": [[[0, "torch.float64"]], [["item", 0]]],
            "uncounted": [0], "guards": ["L[0].size()[0] > 4"], "generated_code": ""}  # fmt: skip
    graph = StoredGraph.from_json(data)
    assert StoredGraph.from_json(graph.json()) == graph
    assert graph.convention.numbers == ([(0, torch.float64)], [("item", 0)])
    file = folder / "graphs" / "a.json"
    for text in ("", "{}", "0\n{}", "\n"):
        cache.keep_file(file, text)
        assert stored.load("a", [torch.ones(3)]) is None


def test_storing_never_fails_for_the_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("on purpose")

    from magpy_core.backends.stored import files

    for owner, name in ((stored, "key_of"), (files, "stored_graph"), (files, "called")):
        for _ in range(2):
            compiled = magpy_core.compile(lambda x: x.sin() * 3, wait=True)
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, failing)
                for _ in range(3):
                    assert torch.allclose(compiled(torch.ones(3)), torch.ones(3).sin() * 3)
            assert region_of(compiled).hits == 2, region_of(compiled).findings


PROGRAM = """
import sys, torch, magpy_core
from magpy_core.regions.api import region_of

torch.manual_seed(0)
what = sys.argv[1]
def blocks():
    layers = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.LayerNorm(32), torch.nn.GELU()) for _ in range(8)]
    return torch.nn.Sequential(*layers, torch.nn.Dropout(0.2))
net = blocks().train(what == "steps")
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
def train(x):
    optimizer.zero_grad()
    loss = forward(x).square().mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.detach()
@torch.no_grad()
def evaluate(x):
    return net(x).mean() * len(x)
target = evaluate if what == "sizes" else net if what in ("model", "lengths") else train
compiled = target if "plain" in sys.argv else magpy_core.compile(target, wait=True)
forward, step = (compiled, train) if target is net else (net, compiled)
for i in range(7):
    x = torch.randn(int(sys.argv[2]) + i if what in ("sizes", "lengths") else 8, 32)
    torch.manual_seed(i)
    print(step(x).item())
    schedule.step()
if "plain" in sys.argv:
    sys.exit()
region = region_of(compiled)
print(region.hits, len(region.captures), [f.code for f in region.findings.values() if f.code.startswith("MP9")])
print("torch._inductor.compile_fx" in sys.modules)
"""


def run(folder: Path, *arguments: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"} | {"XDG_CACHE_HOME": str(folder)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "first", "second"),
    [("steps", "0", "0"), ("model", "0", "0"), ("sizes", "4", "4"), ("sizes", "4", "20"), ("lengths", "4", "20")],
)
def test_the_next_run_imports_no_compiler(what: str, first: str, second: str, tmp_path: Path) -> None:
    plain = run(tmp_path, what, second, "plain")
    before = run(tmp_path, what, first)
    after = run(tmp_path, what, second)
    assert before[-1] == "True" and after[-1] == "False"
    assert after[:-2] == before[:-2] or first != second
    assert [float(one) for one in after[:-2]] == pytest.approx([float(one) for one in plain], rel=1e-4)
    assert after[-2] == before[-2], (before, after)


def test_what_was_verified_is_not_compared_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from magpy_core.capture import graphs

    asked: list[object] = []
    check = graphs.check
    monkeypatch.setattr(graphs, "check", lambda *args, **more: asked.append(1) or check(*args, **more))

    def called() -> Any:
        made = magpy_core.compile(lambda x: torch.tanh(x) * 3, wait=True)
        for _ in range(3):
            made(torch.ones(5))
        return made

    called()
    assert len(asked) == 1 and len(list((folder / "graphs").glob("*.verified"))) == 1
    (again,) = magpy_core.captures(called())
    assert len(asked) == 1 and again.is_kept and not again.verdicts[0].unchecked
    for mark in (folder / "graphs").glob("*.verified"):
        mark.unlink()
    called()
    assert len(asked) == 2
    (stored,) = (folder / "graphs").glob("*.json")
    stored.unlink()  # code that is stored anew is another one, about which the mark says nothing
    mark = stored.with_suffix(".verified")
    assert mark.exists()
    monkeypatch.setattr(graphs, "check", lambda *args, **more: Verdict(0.0, unchecked="not now"))
    called()
    assert stored.exists() and not mark.exists()
    monkeypatch.setenv("MAGPY_VERIFY", "0")
    for mark in (folder / "graphs").glob("*.verified"):
        mark.unlink()
    called()
    assert len(asked) == 2
