"""A program as users run it: ``magpy-lsp run``, with calls timed by turns; only what Inductor takes is left out.

It changes its world once compiled code serves, and prints what it sees: exactly what eager mode prints.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import environment, plainly, under_magpy, write

PROGRAM = """
    import functools, importlib.util, sys, time, weakref
    import torch
    from torch import nn

    def until_compiled(call):
        # In eager mode, as often as the compiled run did.
        if "magpy_core" not in sys.modules:
            return [call() for _ in range(int(sys.argv[1]))]
        from magpy_core.regions import provider

        calls, end = 0, time.monotonic() + 300
        while calls < 8 or not served(provider.session().regions):
            assert time.monotonic() < end
            call()
            calls += 1
        print(calls, file=sys.stderr)

    def served(regions):
        own = [region for region in regions if region.kind == "module"]
        return len(own) == 2 and all(region.hits or region.disabled or region.is_cut for region in own)

    class Base:
        registry = {}
        factor = 1.0

        def __init_subclass__(cls):
            Base.registry[cls.__name__] = cls

    class Double(Base):
        factor = 2.0

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(256, 256)
            self.history = []
            self.owner = Base()

        @functools.lru_cache(maxsize=2)
        def scale(self, n):
            evaluated.append(n)
            return n + 0.5

        def note(self, kind):
            if kind == "many":
                self.history.append("many")
            else:
                self.history.append("few")

        def forward(self, x):
            self.note("many")
            self.owner = Base()
            y = self.layer(x).relu() * sum(cls.factor for cls in Base.registry.values())
            self.note("few")
            return y * self.scale(2) + self.scale(x.shape[0])

    class Reader(nn.Module):
        def forward(self, x):
            return x * float(loader.get_data("factor.txt"))

    spec = importlib.util.spec_from_file_location("a_package", __file__)
    loader = spec.loader
    evaluated = []
    torch.manual_seed(0)
    net, reader = Net(), Reader()
    x = torch.linspace(0, 1, 64 * 256).reshape(64, 256)

    def call(n=64):
        owner = weakref.ref(net.owner)
        result = net(x[:n]).sum() + reader(x[0, 1:3]).sum()
        dead = owner() is None
        return f"{result.item():.0f} {dead}"

    with open("factor.txt", "w") as file:
        file.write("1000")
    until_compiled(call)
    print(call(), len(net.history), net.scale.cache_info())
    with open("factor.txt", "w") as file:
        file.write("9000000")
    Double.factor = 30.0
    print(call())

    class Half(Base):
        factor = 0.5

    print([call(), call(48), call(), call(2), call(), call(48), call()])
    print(evaluated, net.history[-3:], net.scale.cache_info())
"""


@pytest.mark.slow
def test_it_sees_what_plain_python_sees(tmp_path: Path) -> None:
    env = environment()
    del env["MAGPY_COMPILE"]
    options = {"steps": 0, "env": env, "timeout": 100.0, "session_factory": SESSIONS["magpy"], "backend": "eager"}
    ran = under_magpy(tmp_path, mode="run", script=write(tmp_path, PROGRAM), **options)
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    calls = ran.stderr.decode().split()[-1]
    plain = plainly(tmp_path, "prog.py", calls)
    assert ran.stdout.decode() == plain.stdout.decode(), plain.stderr.decode()
    (net,) = (region for region in ran.outcome.report.regions if region.name.endswith("Net"))
    assert net.hits > 0
    lines = PROGRAM.splitlines()
    shown = {lines[f.location.range.start.line].strip() for f in ran.outcome.report.findings if f.code == "MP302"}
    assert {'self.history.append("many")', 'self.history.append("few")'} <= shown
