"""`pytest --magpy` fails tests that lead to new findings. Each project here is tested by a pytest of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MODEL = """
    import torch
    from torch import nn

    class Gate(nn.Module):
        def __init__(self, breaks):
            super().__init__()
            self.layer, self.breaks = nn.Linear(3, 3), breaks

        def forward(self, x):
            x = self.layer(x)
            if self.breaks and x.sum() > 1e9:
                x = x * 2
            return x
"""
TESTS = """
    import torch
    from model import Gate

    def test_whole():
        assert Gate(False)(torch.ones(2, 3)).shape == (2, 3)

    def test_broken():
        assert Gate(True)(torch.ones(2, 3)).shape == (2, 3)

    def test_broken_again():
        assert Gate(True)(torch.ones(2, 3)).shape == (2, 3)

    def test_without_torch():
        assert True
"""
OTHER = """

    class Other(Gate):
        def forward(self, x):
            y = super().forward(x)
            return y if y.min() > -1e9 else x
"""
MORE_TESTS = """

    def test_other():
        from model import Other
        Other(False)(torch.ones(2, 3))

    def test_known():
        Gate(True)(torch.ones(2, 3))
"""
PLUGIN = ("-p", "lsp_server.in_process.pytest_plugin")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "model.py", MODEL)
    write(tmp_path, "test_model.py", TESTS)
    write(tmp_path, "pyproject.toml", "[tool.magpy]\n")
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(textwrap.dedent(text))


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), *PLUGIN, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)


def test_without_the_option_nothing_is_monitored(project: Path) -> None:
    done = pytest_in(project)
    assert done.returncode == 0 and "4 passed" in done.stdout and "MagPy" not in done.stdout
    help_text = pytest_in(project, "--help").stdout
    assert "--magpy-update-baseline" in help_text


def test_tests_that_lead_to_a_graph_break_fail(project: Path) -> None:
    done = pytest_in(project, "--magpy")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 2 passed" in done.stdout
    assert "test_model.py::test_broken" in done.stdout and "test_model.py::test_whole" not in done.stdout
    assert "model.py:12:" in done.stdout and "MP101 [warning]" in done.stdout
    assert "if self.breaks and x.sum() > 1e9:" in done.stdout
    assert "explain MP101" in done.stdout and "--magpy-update-baseline" in done.stdout
    assert "2 tests failed by new ones." in done.stdout


@pytest.mark.slow
def test_what_is_in_the_baseline_fails_no_test(project: Path) -> None:
    write(project, "pyproject.toml", '[tool.magpy]\nbaseline = "known.json"\n')
    assert pytest_in(project, "--magpy").returncode == 1, "there is none yet"
    done = pytest_in(project, "--magpy-update-baseline")
    assert done.returncode == 0 and "written to known.json" in done.stdout, done.stdout + done.stderr
    known = json.loads((project / "known.json").read_text())["runs"]["pytest"]["findings"]
    assert [entry["code"] for entry in known] == ["MP101"]  # twice
    assert pytest_in(project, "--magpy").returncode == 0
    with open(project / "model.py", "a") as file:
        file.write(textwrap.dedent(OTHER))
    with open(project / "test_model.py", "a") as file:
        file.write(textwrap.dedent(MORE_TESTS))
    done = pytest_in(project, "--magpy")
    assert done.returncode == 1 and "test_model.py::test_other" in done.stdout and "1 failed, 5 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [["-k", "whole"], ["test_model.py::test_whole"], ["--collect-only"], ["-k", "nothing"]])
def test_tests_that_did_not_run_keep_what_is_known(project: Path, options: list[str]) -> None:
    write(project, "pyproject.toml", '[tool.magpy]\nbaseline = "known.json"\n')
    assert pytest_in(project, "--magpy-update-baseline").returncode == 0
    known = (project / "known.json").read_text()
    pytest_in(project, "--magpy-update-baseline", *options)
    assert (project / "known.json").read_text() == known


@pytest.mark.slow
def test_a_baseline_that_can_not_be_written_is_told(project: Path) -> None:
    write(project, "pyproject.toml", '[tool.magpy]\nbaseline = "no/folder/known.json"\n')
    done = pytest_in(project, "--magpy-update-baseline", "-k", "whole")
    assert done.returncode == 4 and "can't be written" in done.stdout and "INTERNAL" not in done.stdout, done.stdout


@pytest.mark.slow
def test_a_forked_process_is_not_monitored(project: Path) -> None:
    test = """
        import gc
        import os
        import torch
        from model import Gate

        def test_fork():
            Gate(False)(torch.ones(2, 3))
            child = os.fork()
            if child == 0:
                Gate(True)(torch.ones(2, 3))
                (monitoring,) = (one for one in gc.get_objects() if type(one).__name__ == "Monitoring")
                os._exit(monitoring.active)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    write(project, "test_model.py", test)
    done = pytest_in(project, "--magpy")
    assert done.returncode == 0 and "MagPy: 1 region in 1 test, 0 findings" in done.stdout, done.stdout


@pytest.mark.slow
def test_settings_and_comments_apply(project: Path) -> None:
    write(project, "pyproject.toml", '[tool.magpy]\nignore = ["MP101"]\n')
    assert pytest_in(project, "--magpy").returncode == 0
    write(project, "pyproject.toml", '[tool.magpy]\nfail-on = "error"\n')
    assert pytest_in(project, "--magpy").returncode == 0
    write(project, "pyproject.toml", "[tool.magpy]\n")
    write(project, "model.py", MODEL.replace("> 1e9:", "> 1e9:  # magpy: ignore[MP101]"))
    assert pytest_in(project, "--magpy").returncode == 0


@pytest.mark.slow
def test_an_exceeded_budget_fails_a_test(project: Path) -> None:
    write(project, "pyproject.toml", '[tool.magpy]\nignore = ["MP101"]\n[tool.magpy.budgets]\ngraph-breaks = 0\n')
    done = pytest_in(project, "--magpy")
    assert done.returncode == 1 and "MP501" in done.stdout and "2 failed, 2 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_a_failed_test_stays_as_it_is(project: Path) -> None:
    write(
        project,
        "test_model.py",
        TESTS.replace("Gate(True)(torch.ones(2, 3)).shape == (2, 3)", "Gate(True)(torch.ones(2, 3)) is None"),
    )
    done = pytest_in(project, "--magpy")
    assert "2 failed, 2 passed" in done.stdout and "new finding" not in done.stdout


@pytest.mark.parametrize(
    ("table", "option", "text"),
    [
        ("[tool.magpy]\nsteps = 'x'\n", "--magpy", "tool.magpy.steps"),
        ("[tool.magpy]\n", "--magpy-update-baseline", "set `baseline`"),
        ('[tool.magpy]\nbaseline = "pyproject.toml"\n', "--magpy", "not valid JSON"),
    ],
)
def test_unusable_settings_are_told_before_any_test(project: Path, table: str, option: str, text: str) -> None:
    write(project, "pyproject.toml", table)
    done = pytest_in(project, option)
    assert done.returncode == 4 and text in done.stderr and "passed" not in done.stdout
