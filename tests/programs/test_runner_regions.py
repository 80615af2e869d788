"""Which regions the runner finds, what it calls them, and where it says they are."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.programs.runner_help import Ran, plainly, under_magpy, write
from tests.programs.spare import printed


def run(folder: Path, source: str, **options: Any) -> Ran:
    write(folder, source)
    ran = under_magpy(folder, script="prog.py", **{"steps": 0, **options})
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    return ran


def places(ran: Ran) -> dict[str, tuple[str, int]]:
    return {r.name: (Path(r.file).name, r.line) for r in ran.outcome.report.regions}


def test_modules_are_named_and_placed(tmp_path: Path) -> None:
    source = """
        import functools
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(2, 2)
            @torch.no_grad()
            @functools.lru_cache
            def forward(self, x):
                return self.inner(x)
        class Trainer:
            def __init__(self):
                self.model = Net()
            def fit(self, data):
                return self.model(data)
        net, x = Net(), torch.ones(2)
        nets = [Net()]
        net(x)
        Trainer().fit(x)
        trainer = Trainer()
        trainer.model(x)
        nets[0](x)
        list(map(Net(), [x]))
        nn.Linear(2, 2)(x)
        def f(some, x): return some(x)
        f(nn.ReLU(), x)
        model = net
        net(x)
    """
    ran = run(tmp_path, source)
    assert places(ran) == {
        "net: Net": ("prog.py", 11),
        "model: Net": ("prog.py", 11),
        "trainer.model: Net": ("prog.py", 11),
        "nets[0]: Net": ("prog.py", 11),
        "Net": ("prog.py", 11),
        "Linear": ("prog.py", 26),
        "some: ReLU": ("prog.py", 27),
    }
    assert ran.regions()["net: Net"] == 2 and {r.kind for r in ran.outcome.report.regions} == {"module"}


def test_a_loss_made_anew_each_step_is_one_region(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn
        a, b = nn.Linear(2, 2), nn.Linear(2, 2)
        for i in range(5):
            nn.MSELoss()(a(torch.ones(2)), torch.ones(2))
        for layer in (a, b):
            layer(torch.ones(2))
        kept = [nn.ReLU() for i in range(2)]
        for k in kept:
            k(torch.ones(1))
    """
    ran = run(tmp_path, source)
    assert ran.regions() == {"a: Linear": 6, "MSELoss": 5, "layer: Linear": 1, "k: ReLU": 1, "k: ReLU #2": 1}


def test_a_module_made_anew_shares_its_region_though_something_keeps_it(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn
        kept = []
        def criterion_of(x):
            criterion = nn.MSELoss()
            kept.append(criterion)
            return criterion(x, x)
        def keep(m):
            kept.append(m)
            return m
        def run(net, x):
            return net(x)
        for i in range(3):
            criterion_of(torch.ones(2))
            keep(nn.ReLU())(torch.ones(2))
        for net in (nn.Tanh(), nn.Tanh()):
            kept.append(net)
            for i in range(2):
                run(net, torch.ones(2))
    """
    assert run(tmp_path, source).regions() == {"criterion: MSELoss": 3, "ReLU": 3, "net: Tanh": 2, "net: Tanh #2": 2}


def test_dead_modules_are_not_kept_alive(tmp_path: Path) -> None:
    source = """
        import torch, weakref
        net = torch.nn.Linear(2, 2)
        net(torch.ones(2))
        opt = torch.optim.SGD(net.parameters())
        opt.step()
        refs = [weakref.ref(net), weakref.ref(opt)]
        del net, opt
        import gc; gc.collect()
        print([r() for r in refs])
    """
    assert run(tmp_path, source).stdout == b"[None, None]\n"


def test_a_class_that_is_defined_anew_shares_a_region(tmp_path: Path) -> None:
    """Otherwise a search over such models would have a region for each of them."""
    source = """
        import torch
        from torch import nn

        def trial(width):
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(4, width)
                def forward(self, x):
                    return self.layer(x).square().mean()
            net = Net()
            for _ in range(2):
                net(torch.ones(2, 4)).backward()
            return float(net.layer.bias.grad.sum())

        torch.manual_seed(0)
        print([trial(4 + n % 2) for n in range(30)])
    """
    ran = run(tmp_path, source)
    assert ran.stdout == printed(tmp_path)
    (region,) = ran.outcome.report.regions
    assert region.calls == 60


def test_locals_of_the_program_are_left_alone(tmp_path: Path) -> None:
    source = """
        import torch, weakref, sys
        def train():
            before = locals()
            net, x = torch.nn.Linear(2, 2), torch.ones(2)
            net(x)
            assert list(before) == [], before
            ref = weakref.ref(x)
            del x
            assert ref() is None
        train()
        print("ok")
    """
    assert run(tmp_path, source).stdout == b"ok\n"


OPTIMIZERS = """
    import torch
    from torch.optim import Optimizer, SGD
    class Before(SGD):
        def step(self, closure=None):
            return super().step(closure)
    class Mine(Optimizer):
        def __init__(self, params):
            super().__init__(params, {})
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p -= 1
            return "stepped"
    class Plain(SGD):
        pass
    p = torch.nn.Parameter(torch.zeros(1))
    p.grad = torch.ones(1)
    before, mine, plain = Before([p], lr=1.0), Mine([p]), Plain([p], lr=1.0)
    lbfgs = torch.optim.LBFGS([p], max_iter=2)
    net = torch.nn.Linear(1, 1)
    def closure():
        lbfgs.zero_grad()
        loss = (net(p) - 1).pow(2).sum()
        loss.backward()
        return loss
    hooks = []
    plain.register_step_post_hook(lambda *a: hooks.append("post"))
    before.step()
    assert mine.step() == "stepped"
    plain.step()
    lbfgs.step(closure)
    print(hooks, p.item() != 0)
"""


@pytest.mark.slow
def test_every_optimizer_is_found(tmp_path: Path) -> None:
    ran = run(tmp_path, OPTIMIZERS)
    assert ran.stdout == printed(tmp_path) and b"['post'] True" in ran.stdout
    assert ran.regions() == {"before: Before": 1, "mine: Mine": 1, "plain: Plain": 1, "lbfgs: LBFGS": 1}
    assert places(ran)["before: Before"] == ("prog.py", 5) and places(ran)["mine: Mine"] == ("prog.py", 11)
    assert [m["n"] for m in ran.messages if m["type"] == "step"] == [1, 2, 3, 4], "a base class's step is not one more"


@pytest.mark.slow
def test_torch_compile_beside_us(tmp_path: Path) -> None:
    source = """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
            def forward(self, x):
                return self.b(self.a(x).relu())
        torch.manual_seed(0)
        net = Net()
        graphs = []
        def backend(gm, inputs):
            graphs.append(sorted({n.op for n in gm.graph.nodes}))
            return gm
        fast = torch.compile(net, backend=backend, fullgraph=True)
        opt = torch.optim.AdamW(net.parameters())
        for i in range(4):
            loss = fast(torch.ones(3, 2)).sum()
            loss.backward()
            opt.step()
            opt.zero_grad()
            print(loss.item())
        call = torch.compile(lambda x: net(x) + 1, backend=backend, fullgraph=True)
        print(call(torch.ones(2)).tolist(), len(graphs))
    """
    ran = run(tmp_path, source)
    plain = plainly(tmp_path, "prog.py")
    assert ran.stdout == plain.stdout and ran.stderr == plain.stderr
    assert ran.regions()["opt: AdamW"] == 4


@pytest.mark.slow
def test_checkpoint_hooks_fx_and_tracing_beside_us(tmp_path: Path) -> None:
    source = """
        import torch
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        block = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
        x = torch.ones(4, 2, requires_grad=True)
        checkpoint(block, x, use_reentrant=False).sum().backward()
        print(x.grad.tolist())
        print(torch.fx.symbolic_trace(block).code)
        print(torch.jit.trace(block.eval(), x.detach())(x).shape)
        print(torch.func.vmap(block)(x).shape)
        import inspect
        print(inspect.signature(block.__call__), torch.nn.Module.__call__.__name__)
        print(inspect.signature(torch.optim.SGD.step), inspect.signature(torch.optim.SGD))
        print(torch.nn.Module.__call__.__qualname__)
    """
    ran = run(tmp_path, source)
    plain = printed(tmp_path)
    assert ran.stdout == plain, (ran.stdout, plain)


# -- functions the user names

NAMED = """
    import functools, inspect
    def deco(f):
        @functools.wraps(f)
        def inner(*a):
            return f(*a)
        return inner

    calls = []
    @deco
    @deco
    def train_step(x):
        return x + 1
    if True:
        def other(x):
            '''doc'''
            calls.append(inspect.stack()[0].lineno)
            return x
    class Trainer:
        def fit(self, x):
            return x * 2
        @staticmethod
        def still(x):
            return x
        @classmethod
        def of(cls, x):
            return cls.__name__, x
        class Inner:
            def deep(self):
                return 7
    later = functools.partial(train_step, 1)
    made = deco(lambda x: x)
    lam = lambda x: x + 5
    def gen():
        yield 1
    alias = other
    print(train_step(1), alias(2), Trainer().fit(3), Trainer.still(4), Trainer.of(5), Trainer.Inner().deep())
    print(lam(1), later())
    print(list(gen()), made(3), calls, train_step.__name__, other.__doc__, sorted(n for n in globals() if "magpy" in n))
    print(inspect.getsource(train_step).splitlines()[0], inspect.getsourcelines(other)[1])
"""
NAMES = [
    "train_step", "other", "Trainer.fit", "Trainer.still", "Trainer.of", "Trainer.Inner.deep", "lam",
]  # fmt: skip


@pytest.mark.parametrize("prefix", ["__main__", "prog"])
@pytest.mark.parametrize("how", ["script", "module"])
def test_named_functions_of_the_script(tmp_path: Path, prefix: str, how: str) -> None:
    write(tmp_path, NAMED)
    wanted = [f"{prefix}.{n}" for n in NAMES]
    regions = [*wanted, f"{prefix}.gen", f"{prefix}.nowhere", "elsewhere.f"]
    ran = under_magpy(tmp_path, **{how: "prog.py" if how == "script" else "prog"}, regions=regions, steps=0)
    plain = plainly(tmp_path, "prog.py")
    assert ran.outcome.kind == "ok" and ran.stderr == b"" and ran.stdout == plain.stdout, (ran.stdout, plain.stdout)
    names = {n.removeprefix("__main__."): 1 for n in wanted}
    assert {k.removeprefix("__main__."): v for k, v in ran.regions().items()} == {
        **names, next(n for n in names if n.endswith("train_step")): 2
    }  # fmt: skip
    lines = textwrap.dedent(NAMED).splitlines()
    for name, (file, line) in places(ran).items():
        assert file == "prog.py" and name.rpartition(".")[2] in lines[line - 1], (name, line)
    missing = [f.message for f in ran.outcome.report.findings if f.code == "MP910"]
    assert [m.split()[3].rstrip(",") for m in missing] == [f"{prefix}.gen", f"{prefix}.nowhere", "elsewhere.f"]


def test_named_functions_of_an_imported_module(tmp_path: Path) -> None:
    write(tmp_path, "", "pkg/__init__.py")
    write(tmp_path, "def step(x):\n    return x + 1\nhandlers = [step]\n", "pkg/training.py")
    source = """
        from pkg.training import handlers, step
        import pkg.training as t
        print(step(1), handlers[0](2), t.__file__.endswith("training.py"), t.__cached__ is not None, t.__spec__.name)
        import linecache, inspect
        print(inspect.getsource(t))
    """
    ran = run(tmp_path, source, regions=["pkg.training.step"])
    assert ran.stdout == plainly(tmp_path, "prog.py").stdout
    assert ran.regions() == {"pkg.training.step": 2} and places(ran)["pkg.training.step"] == ("training.py", 1)


@pytest.mark.slow
def test_a_named_region_holds_what_it_calls_and_its_steps_count(tmp_path: Path) -> None:
    source = """
        import torch
        net = torch.nn.Linear(2, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        ends = []
        def train_step(x):
            try:
                net(x).sum().backward()
                opt.step()
                return 1
            finally:
                ends.append(1)
        done = 0
        try:
            while True:
                done += train_step(torch.ones(2))
        finally:
            print(done, len(ends))
    """
    ran = run(tmp_path, source, regions=["train_step", "prog.train_step"], steps=3)
    assert ran.regions() == {"prog.train_step": 3} and ran.stdout == b"2 3\n"


def test_a_named_region_without_optimizer_counts_as_steps(tmp_path: Path) -> None:
    ran = run(tmp_path, "import torch\ndef f(): return torch.ones(1)\nwhile True: f()\n", regions=["prog.f"], steps=4)
    assert ran.regions() == {"prog.f": 4}


def test_syntax_warnings_and_errors_are_the_programs_own(tmp_path: Path) -> None:
    write(tmp_path, "def f(): pass\nlam = lambda: 0\nx = 'a'()  if False else 1 is 1\n")
    plain = plainly(tmp_path, "prog.py")
    ran = under_magpy(tmp_path, script="prog.py", regions=["prog.f", "prog.lam"])
    assert plain.stderr.count(b"SyntaxWarning") == 2 and ran.stderr == plain.stderr


@pytest.mark.slow
def test_the_users_call_policy_reaches_the_monitor(tmp_path: Path) -> None:
    source = """
        import torch
        net = torch.nn.Linear(1, 1)
        net(torch.ones(1))
        import time
        from magpy_core.knowledge import policy
        print(policy.verdict(time.time), policy.verdict(time.sleep))
    """
    ran = run(tmp_path, source, call_policy={"time.time": "pure"})
    assert ran.stdout == b"pure host\n"
    wrong = run(tmp_path, source, call_policy={"time.time": "sometimes"})
    (message,) = [f.message for f in wrong.outcome.report.findings if f.code == "MP910"]
    assert "call policy of 'time.time' is 'sometimes'; it must be pure, torch or host" in message
