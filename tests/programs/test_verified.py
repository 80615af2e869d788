"""A compiler with a bug, as users would meet it: ``magpy-lsp run`` with default settings, compiling in the background."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import environment, plainly, under_magpy, write

PROGRAM = """
    import sys, time
    import torch
    from torch import nn
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Wrong(CustomGraphPass):
        def __call__(self, graph):
            for node in list(graph.nodes):
                if node.target is torch.ops.aten.tanh.default:
                    node.replace_all_uses_with(node.args[0])
                    graph.erase_node(node)

        def uuid(self):
            return None

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(256, 256), nn.Linear(256, 256)

        def forward(self, x):
            hidden = self.first(x)
            return self.last(torch.tanh(hidden))

    def settled():
        if "magpy_core" not in sys.modules:
            return True
        from magpy_core.regions import provider

        session = provider.session()
        (region,) = [one for one in session.regions if one.kind == "module"]
        if session.is_tracing:
            time.sleep(0.5)  # which leaves it the processor
            return False
        return bool(region.hits or region.disabled)

    if len(sys.argv) > 1:
        config.post_grad_custom_post_pass = Wrong()
    torch.manual_seed(0)
    net, x = Net(), torch.randn(64, 256)
    end = time.monotonic() + 600
    with torch.no_grad():
        for n in range(10**9):
            total = net(x).sum().item()
            if n < 8:
                print(total)
            elif settled() or time.monotonic() > end:
                break
        for _ in range(8):
            print(round(net(x).sum().item(), 2))
"""


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("bug", [True, False], ids=["bug", "no bug"])
def test_a_wrong_result_of_the_compiler_reaches_no_program(tmp_path: Path, bug: bool) -> None:
    env = environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    env.pop("MAGPY_COMPILE", None)
    argv = ["bug"] if bug else []
    options = {"steps": 0, "env": env, "timeout": 660.0, "session_factory": SESSIONS["magpy"], "args": argv}
    ran = under_magpy(tmp_path, mode="run", script=write(tmp_path, PROGRAM), **options)
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    plain = plainly(tmp_path, "prog.py", *argv)
    assert ran.stdout.decode() == plain.stdout.decode()
    (net,) = (region for region in ran.outcome.report.regions if region.name.endswith("Net"))
    wrong = [finding for finding in ran.outcome.report.findings if finding.code == "MP914"]
    if bug:
        (finding,) = wrong
        lines = Path(finding.location.file).read_text().splitlines()
        assert "self.last(torch.tanh(hidden))" in lines[finding.location.range.start.line] and net.hits == 0
        assert "has 1 of 6 operations: `aten.tanh.default`" in finding.hint and "Inductor's code is wrong" in finding.hint
        values = {value.name: value.repr for value in finding.values}
        assert values["operations"] == "aten.tanh.default" and f"`{values['reproducer']}`" in finding.hint
        file = Path(values["reproducer"])
        assert file.parent == tmp_path / "cache" / "magpy" / "differences"
        assert "torch.ops.aten.tanh.default" in file.read_text() and f"{finding.location.file}:" in file.read_text()
        assert "does not show it with torch alone" in finding.hint, "the bug is not torch's"
        told = [message["finding"] for message in ran.messages if message["type"] == "finding"]
        assert any(one["code"] == "MP914" and one["hint"] == finding.hint for one in told), "while the program ran"
    else:
        assert not wrong and net.hits and net.verified == 1 and not net.unverified
