"""``magpy-lsp verify`` as a user calls it: a program that is right, one with a wrong kernel, and one without seeds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.programs.runner_help import environment, write

PROGRAM = """
    import sys
    import torch
    from torch import nn
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Wrong(CustomGraphPass):
        def __call__(self, graph):
            for node in list(graph.nodes):
                if node.target is torch.ops.aten.tanh.default:
                    with graph.inserting_after(node):
                        scaled = graph.call_function(torch.ops.aten.mul.Tensor, (node, 1.001))
                    node.replace_all_uses_with(scaled)
                    scaled.args = (node, 1.001)

        def uuid(self):
            return None

    if "bug" in sys.argv:
        config.post_grad_custom_post_pass = Wrong()
    if "unseeded" not in sys.argv:
        torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 4)

        def forward(self, x):
            return self.last(torch.tanh(self.norm(self.first(x))))

    def main():
        net = Net()
        named = [one for one in sys.argv if hasattr(torch.optim, one)]
        optimizer = getattr(torch.optim, named[0] if named else "Adam")(net.parameters(), lr=1e-2)
        scale = 250_000 if "large" in sys.argv else 1
        for step in range(24):
            x = torch.randn(64, 16)
            optimizer.zero_grad()
            loss = ((net(x) - 2 * x[:, :4]) ** 2).mean() * scale
            loss.backward()
            optimizer.step()
            if step % 4 == 0:
                print(f"step {step} loss {loss.item():.6f}")
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")

    main()
"""


def verified(folder: Path, *args: str, **env: str) -> tuple[int, dict[str, Any]]:
    write(folder, PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server.cli", "verify", "--format", "json", *args],
        cwd=folder, env=environment(**env), capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_a_right_program_is_equal_up_to_rounding(tmp_path: Path) -> None:
    status, found = verified(tmp_path, "prog.py")
    assert status == 0 and found["verdict"] in ("equal", "rounding"), found["summary"]
    assert found["compiled_calls"] > 15 and found["steps"] == 24 and found["compared_steps"] == [1, 2, 4, 8, 16]
    assert not (tmp_path / "last.pt").exists()  # it was written in copies of the folder


@pytest.mark.slow
@pytest.mark.timeout(1300)
@pytest.mark.parametrize(("optimizer", "amplifies"), [("Adadelta", True), ("SGD", False)])
def test_the_operation_and_the_optimizer_are_named(tmp_path: Path, optimizer: str, amplifies: bool) -> None:
    """The first bias has no gradient but rounding, as a normalization follows it."""
    scale = ["large"] if amplifies else []
    status, found = verified(tmp_path, "--steps", "9", "prog.py", optimizer, *scale)
    assert (status, found["verdict"]) == (0, "rounding"), found["summary"]
    origin, lines = found["origin"], (tmp_path / "prog.py").read_text().splitlines()
    file, _, line = origin["where"].rpartition(":")
    assert Path(file).resolve() == (tmp_path / "prog.py").resolve() and "self.last(torch.tanh" in lines[int(line) - 1]
    assert origin["operation"] == "native_batch_norm" and 1e-8 < origin["apart"] < 1e-5
    first = next(one["step"] for one in found["growth"] if one["compiled"])
    assert 1 < origin["step"] <= first and "from `native_batch_norm` (step" in found["summary"]
    if amplifies:
        assert found["amplified"]["optimizer"] == optimizer and found["amplified"]["factor"] > 1000
        assert f"times by {optimizer} in step" in found["summary"]
    else:
        assert found["amplified"] is None


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_a_kernel_that_is_wrong_by_a_thousandth_differs(tmp_path: Path) -> None:
    status, found = verified(tmp_path, "--steps", "6", "prog.py", "bug", MAGPY_VERIFY="0")
    (first, *_) = found["differences"]
    assert (status, found["verdict"], first["what"]) == (1, "differs", "state"), found["summary"]
    assert first["step"] == 4 and first["name"].startswith("Net.") and first["largest"] > 10 * first["explained"]


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_a_program_without_seeds_can_not_be_compared(tmp_path: Path) -> None:
    status, found = verified(tmp_path, "--steps", "4", "prog.py", "unseeded")
    assert (status, found["verdict"]) == (2, "unseeded") and "torch.manual_seed" in found["summary"]
