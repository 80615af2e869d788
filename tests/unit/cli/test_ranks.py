"""--nproc-per-node and nproc on the command line: who is asked for how many processes, and how ranks are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.text import Text

from lsp_server.cli import program
from lsp_server.cli.main import cli
from lsp_server.formats.view import View
from magpy_core.findings import Finding, Location, Position, Range
from magpy_core.runner.request import RunRequest
from tests.unit.cli.test_program import FakeHandle, Tool


def test_the_number_of_processes_comes_from_the_option_then_the_entrypoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, asked = Tool(tmp_path), []

    def launch(request: RunRequest, nproc: int) -> FakeHandle:
        asked.append(nproc)
        return tool.launch(request)

    monkeypatch.setattr(program.execute, "__defaults__", (launch,))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[[tool.magpy.entrypoints]]\nname = 'ddp'\nprogram = 'train.py'\nnproc = 3\n")
    for args in (["train.py"], ["ddp"], ["--nproc-per-node", "2", "ddp"], ["--nproc-per-node", "1", "train.py"]):
        assert CliRunner().invoke(cli, ["check", *args]).exit_code == 0
    assert asked == [0, 3, 2, 1]
    assert "nproc = 3" in CliRunner().invoke(cli, ["check", "--show-settings", "ddp"]).output


@pytest.mark.parametrize(("ranks", "shown"), [((), ""), ((1,), " (only rank 1)"), ((0, 2), " (only ranks 0, 2)")])
def test_ranks_are_shown_where_not_all_have_it(ranks: tuple[int, ...], shown: str) -> None:
    at = Location("/p/train.py", Range(Position(0, 0), Position(0, 1)))
    header: Text = View(base=Path("/p")).header(Finding("MP102", "m", at, ranks=ranks))
    assert header.plain == f"train.py:1:1: MP102 [warning] m{shown}"
