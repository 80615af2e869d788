"""check and run: options, exit statuses, where output goes, how a run that ends badly is told. The runner is a fake here."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result

from lsp_server.cli import program
from lsp_server.cli.follow import Runs
from lsp_server.cli.kernels import kernels
from lsp_server.cli.main import cli
from lsp_server.cli.options import PROGRAM_ARGS
from lsp_server.cli.program import exit_status
from lsp_server.cli.settings import resolve
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, Severity, StepReport, TargetReport
from magpy_core.findings.report import report_schema
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Kind, Outcome, RunRequest

ROOT = Path(__file__).parents[3]
SEARCH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


class FakeHandle:
    """A run that is over at once."""

    def __init__(self, outcome: Outcome, messages: list[Message] | None = None) -> None:
        self.outcome = outcome
        self.messages = messages or []

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def interrupt(self) -> None: ...
    def cancel(self) -> None: ...


class Tool:
    """The command line with a fake runner in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "train.py"
        self.script.write_text("loss.item()\nx = 1\n", encoding="utf-8")
        self.findings: list[Finding] = []
        self.regions: list[RegionSummary] = []
        self.step: StepReport | None = None
        self.kernels: TargetReport | None = None
        self.kind: Kind = "ok"
        self.message = ""
        self.stopped_after: int | None = None
        self.requests: list[RunRequest] = []

    def launch(self, request: RunRequest, nproc: int = 1) -> FakeHandle:
        self.requests.append(request)
        parts = {"step": self.step, "kernels": self.kernels, "stopped_after": self.stopped_after}
        report = Report(request.entrypoint, self.regions, self.findings, {"total": 0.5}, **parts)
        return FakeHandle(Outcome(self.kind, None, None, self.message, report))

    def add(self, code: str, line: int = 1, message: str = "message") -> None:
        at = Range(Position(line - 1, 0), Position(line - 1, 5))
        self.findings.append(Finding(code, message, Location(str(self.script), at)))

    def pyproject(self, body: str) -> Path:
        file = self.folder / "pyproject.toml"
        file.write_text("[tool.magpy]\n" + body, encoding="utf-8")
        return file

    def __call__(self, *args: str) -> Result:
        return CliRunner().invoke(cli, list(args), prog_name="magpy-lsp")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    made = Tool(tmp_path)
    monkeypatch.setattr(program.execute, "__defaults__", (made.launch,))
    monkeypatch.setattr(kernels, "__defaults__", (made.launch,))
    monkeypatch.chdir(tmp_path)
    return made


# ---------------------------------------------------------------- exit statuses


@pytest.mark.parametrize(
    ("kind", "codes", "options", "status"),
    [
        ("ok", [], [], 0),
        ("ok", ["MP301", "MP204"], [], 0),
        ("ok", ["MP102"], [], 1),
        ("ok", ["MP102"], ["--exit-zero"], 0),
        ("ok", ["MP102"], ["--fail-on", "error"], 0),
        ("ok", ["MP301"], ["--fail-on", "information"], 1),
        ("ok", ["MP204"], ["--fail-on", "hint"], 1),
        ("ok", ["MP102"], ["--ignore", "MP1"], 0),
        ("ok", ["MP102", "MP103"], ["--select", "MP103,MP2"], 1),
        ("ok", ["MP102"], ["--select", "MP2"], 0),
        ("failed", [], [], 3),
        ("failed", ["MP102"], ["--exit-zero"], 3),
        ("killed", [], [], 3),
        ("timeout", ["MP102"], [], 3),
        ("bad-entrypoint", [], [], 2),
        ("tool-error", [], ["--exit-zero"], 2),
        ("cancelled", [], [], 2),
    ],
)
def test_exit_status_of_check(tool: Tool, kind: Kind, codes: list[str], options: list[str], status: int) -> None:
    tool.kind = kind
    for code in codes:
        tool.add(code)
    assert tool("check", *options, "train.py").exit_code == status


def test_a_graph_break_does_not_make_a_run_fail(tool: Tool) -> None:
    tool.add("MP102")
    assert tool("run", "train.py").exit_code == 0
    assert tool("run", "--fail-on", "warning", "train.py").exit_code == 1


def test_exit_status_is_a_function_of_outcome_and_findings() -> None:
    outcome = Outcome("ok", 0, None, "", Report("t.py"))
    at = Location("/t.py", Range(Position(0, 0), Position(0, 1)))
    raised = Finding("MP204", "m", at, severity_override=Severity.ERROR)
    assert exit_status(outcome, [raised], Severity.ERROR, exit_zero=False) == 1


# ---------------------------------------------------------------- what is asked of the runner


def test_defaults(tool: Tool) -> None:
    tool("check", "train.py")
    tool("run", "train.py")
    check, run = tool.requests
    assert (check.mode, check.steps, check.script, check.module, check.args) == ("check", 3, "train.py", None, [])
    assert (run.mode, run.steps, run.timeout, run.backend, run.stdout) == ("run", 0, None, "inductor", "inherit")


@pytest.mark.parametrize("command", ["check", "run", "kernels"])
@pytest.mark.parametrize("program", [["train.py"], ["-m", "package.train"], ["-mpackage.train"], ["--module=package.train"]])
def test_everything_after_the_program_is_the_programs(tool: Tool, command: str, program: list[str]) -> None:
    args = ["--steps", "9", "a b", "--", "-m", "--help", "--format=json", ""]
    for between in ([], ["--"]):
        result = tool(command, "--steps", "2", "--cwd=.", *program, *between, *args)
        request = tool.requests.pop()
        assert request.args == args and request.steps == 2 and (request.script is None) == (request.module is not None)
        assert ("`--steps` stands after the script, so it goes to the program" in result.stderr) == (not between)
    tool(command, *program, "--lr", "9")
    assert tool.requests.pop().args == ["--lr", "9"]


def test_a_program_that_was_stopped_is_told(tool: Tool) -> None:
    tool.stopped_after = 3
    assert "The program was stopped after 3 steps (`--steps`; 0 runs it to its end)." in tool("check", "train.py").stdout
    assert json.loads(tool("check", "--format", "json", "train.py").stdout)["stopped_after"] == 3
    assert "stopped after 3 steps" in tool("check", "--format", "markdown", "train.py").stdout


def test_a_module_and_its_arguments(tool: Tool) -> None:
    tool("check", "-m", "package.train", "--", "data.csv")
    assert (tool.requests[0].module, tool.requests[0].script, tool.requests[0].args) == ("package.train", None, ["data.csv"])


def test_options_reach_the_runner(tool: Tool) -> None:
    (tool.folder / "work").mkdir()
    result = tool(
        "check", "--python", sys.executable, "--cwd", "work", "--timeout", "1.5", "--backend", "eager", "train.py"
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    request = tool.requests[0]
    assert (request.python, request.cwd, request.timeout, request.backend) == (sys.executable, "work", 1.5, "eager")
    assert request.script == str(tool.script), "a relative script is meant from here, not from --cwd"


def test_python_may_be_the_folder_of_an_environment(tool: Tool) -> None:
    assert tool("check", "--python", sys.prefix, "train.py").exit_code == 0
    assert tool.requests[0].python == os.path.join(sys.prefix, "bin", "python")


def test_settings_of_the_table_and_the_command_line_above_them(tool: Tool) -> None:
    file = tool.pyproject(
        "steps = 7\ntimeout = 9\nignore = ['MP1']\nfail-on = 'error'\nbackend = 'eager'\nregions = ['a.b']\n"
        "[tool.magpy.severity]\nMP301 = 'error'\n[tool.magpy.call-policy]\n'c.d' = 'pure'\n"
    )
    tool.add("MP102")
    assert tool("check", "train.py").exit_code == 0, "MP1 is ignored"
    assert tool("check", "--ignore", "MP2", "--fail-on", "warning", "train.py").exit_code == 1
    request = tool.requests[0]
    assert (request.steps, request.timeout, request.backend) == (7, 9.0, "eager")
    assert (request.regions, request.call_policy) == (["a.b"], {"c.d": "pure"})
    tool.findings.clear()
    tool.add("MP301")
    assert tool("check", "train.py").exit_code == 1, "MP301 counts as an error"
    tool("run", "train.py")
    assert tool.requests[-1].steps == 0, "steps in the table are for check"

    shown = tool("check", "--steps", "2", "--show-settings", "train.py")
    assert shown.exit_code == 0
    assert f"timeout = 9.0  # {file}:3" in shown.output
    assert "steps = 2  # command line" in shown.output
    assert "select = []  # default" in shown.output
    assert len(tool.requests) == 4, "--show-settings runs nothing"


def test_entrypoint_from_the_table(tool: Tool) -> None:
    tool.pyproject("entrypoint = 'train.py'")
    tool("check")
    tool.pyproject("entrypoint = '-m package.train'")
    tool("check", "--", "x")
    assert tool.requests[0].script == str(tool.script)
    assert (tool.requests[1].module, tool.requests[1].args) == ("package.train", ["x"])


# ---------------------------------------------------------------- usage errors


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["check"], "No program to run: name a script or -m MODULE, or set `entrypoint` under [tool.magpy]"),
        (["check", "--lr", "3", "train.py"], "options of your program stand after the script"),
        (["check", "--select", "E501", "train.py"], "'E501' is not a finding code or a prefix of one"),
        (["check", "--ignore", ",", "train.py"], "the list of codes is empty."),
        (["check", "--steps", "-1", "train.py"], "--steps"),
        (["check", "--timeout", "0", "train.py"], "--timeout"),
        (["check", "--fail-on", "warn", "train.py"], "'warn' is not one of"),
        (["check", "--format", "xml", "train.py"], "'xml' is not one of"),
        (["check", "--cwd", "nowhere", "train.py"], "'nowhere' does not exist"),
        (["check", "--python", "nopython", "train.py"], "no Python interpreter at 'nopython'; use the path of one"),
        (["run", "--backend", "tvm", "train.py"], "'tvm' is not a backend; known: inductor, aot_eager, eager."),
        (["check", "--output", "nowhere/report.json", "train.py"], "can't be written: the directory"),
        (["check", "--output", ".", "train.py"], "is a directory"),
        (["check", "--format", "sarif=", "train.py"], "names no file"),
        (["check", "--format", "sarif=.", "train.py"], "is a directory"),
        (["check", "--format", "json", "--format", "sarif", "train.py"], "Only one --format can go to stdout: add a file"),
        (["check", "--format", "json=a", "--format", "sarif=./a", "train.py"], "Two reports would go to"),
        (["explain"], "Name a code, as in `magpy-lsp explain MP102`, or use --all."),
        (["explain", "--all", "MP102"], "Use either codes or --all, not both."),
        (["explain", "MP999"], "'MP999' is not a finding code; did you mean"),
        (["explain", "zzz"], "'zzz' is not a finding code; `magpy-lsp explain --all` lists them."),
        (["doctor", "--python", "nopython"], "no Python interpreter at 'nopython'"),
    ],
)  # fmt: skip
def test_usage_errors_say_what_to_do_and_run_nothing(tool: Tool, args: list[str], sentence: str) -> None:
    result = tool(*args)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())
    assert result.stdout == "" and tool.requests == []


def test_a_broken_table_is_status_2_and_runs_nothing(tool: Tool) -> None:
    file = tool.pyproject("step = 1\nsteps = 'x'\n")
    result = tool("check", "train.py")
    assert result.exit_code == 2 and tool.requests == []
    assert result.stderr == (
        f"{file}:2: MP910 `tool.magpy.step` is not a setting; did you mean `steps`?\n"
        f"{file}:3: MP910 `tool.magpy.steps` must be an integer, 0 or more, not the string 'x'.\n"
        "magpy-lsp: `magpy-lsp docs settings` describes the settings of [tool.magpy].\n"
    )


# ---------------------------------------------------------------- what is printed, and where


def region(**values: Any) -> RegionSummary:
    return RegionSummary("module:Net", "module", "Net", "", 0, **{"calls": 3, "captures": 1, "complete": True, **values})


def test_check_prints_findings_then_regions_then_totals(tool: Tool) -> None:
    tool.add("MP102", message="`loss.item()` reads a tensor's value")
    tool.regions.append(region(guards=41))
    lines = tool("check", "train.py").stdout.splitlines()
    assert lines[0] == "train.py:1:1: MP102 [warning] `loss.item()` reads a tensor's value"
    assert lines[1:3] == ["   1 | loss.item()", "     | ^^^^^"]
    assert any(line.startswith("    hint: ") for line in lines)
    assert lines[-2:] == [
        "Net: one graph, 1 capture, 41 guards",
        "Found 1 finding (1 warning) in 1 file.",
    ]
    assert tool("check", "--details", "train.py").stdout.splitlines()[-2:] == [
        "Region Net (module): 3 calls, 1 capture, complete graph, 0 graph breaks, 41 guards, 0 side effects",
        "Found 1 finding (1 warning) in 1 file.",
    ]


def test_concise_and_statistics(tool: Tool) -> None:
    tool.add("MP102")
    tool.add("MP102", line=2)
    out = tool("check", "--format", "concise", "--statistics", "train.py").stdout.splitlines()
    assert out[:2] == ["train.py:1:1: MP102 [warning] message", "train.py:2:1: MP102 [warning] message"]
    assert out[-1] == "     2  MP102  [warning]  A tensor's value is read by Python"


def test_json_is_all_of_stdout_and_the_programs_stdout_goes_to_stderr(tool: Tool) -> None:
    tool.add("MP102")
    tool.regions.append(region())
    result = tool("check", "--format", "json", "--statistics", "train.py")
    jsonschema.validate(json.loads(result.stdout), report_schema())
    assert tool.requests[0].stdout == "stderr"
    assert "MP102  [warning]" in result.stderr


def test_output_file(tool: Tool) -> None:
    tool.add("MP102")
    result = tool("check", "--format", "json", "--output", "report.json", "train.py")
    assert result.exit_code == 1
    assert tool.requests[0].stdout == "inherit"
    assert json.loads((tool.folder / "report.json").read_text())["findings"][0]["code"] == "MP102"
    assert result.stdout == "No region was monitored.\nFound 1 finding (1 warning) in 1 file.\n"
    assert "the json report is in" in result.stderr
    tool("check", "--output", "report.txt", "--color", "always", "train.py")
    text = (tool.folder / "report.txt").read_text()
    assert text.startswith("train.py:1:1: MP102 [warning]") and "\x1b" not in text


def test_several_formats_at_once(tool: Tool) -> None:
    tool.add("MP102")
    tool.regions.append(region())
    result = tool("check", "--format", "sarif=a.sarif", "--format", "json=a.json", "--format", "junit=a.xml", "train.py")
    assert result.exit_code == 1 and tool.requests[0].stdout == "inherit"
    assert json.loads((tool.folder / "a.sarif").read_text())["runs"][0]["results"][0]["ruleId"] == "MP102"
    assert json.loads((tool.folder / "a.json").read_text())["findings"][0]["fingerprint"]
    assert "<failure" in (tool.folder / "a.xml").read_text()
    assert "    hint: " in result.stdout, "stdout keeps the full format"
    assert result.stderr.count("report is in") == 3
    both = tool("check", "--format", "github", "--format", "gitlab=g.json", "--output", "commands.txt", "train.py")
    assert (tool.folder / "commands.txt").read_text().startswith("::warning file=train.py,line=1")
    assert both.stdout.startswith("Net: one graph"), "with --output only the summary is left for stdout"


@pytest.mark.parametrize("form", ["json", "sarif", "gitlab", "junit", "markdown"])
def test_a_document_is_all_of_stdout(tool: Tool, form: str) -> None:
    tool.add("MP102")
    result = tool("check", "--format", form, "train.py")
    assert tool.requests[0].stdout == "stderr"
    assert "No region was monitored" not in result.stdout and "MP102" in result.stdout
    tool.kind, tool.message = "bad-entrypoint", "no such file"
    assert tool("check", "--format", form, "train.py").stdout, "a reader always gets a document"


def test_output_that_can_not_be_written_after_all_is_status_2(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = tool("check", "--output", "report.txt", "train.py")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr


def test_color(tool: Tool) -> None:
    tool.add("MP102")
    assert "\x1b[" in tool("check", "--color", "always", "train.py").stdout
    assert "\x1b[" not in tool("check", "--color", "never", "train.py").stdout
    assert "\x1b[" not in tool("check", "train.py").stdout, "auto: this is no terminal"


def test_comments_suppress_and_unused_ones_are_flagged(tool: Tool) -> None:
    tool.script.write_text("loss.item()  # magpy: ignore[MP102]\nx = 1  # magpy: ignore[MP301]\n")
    tool.add("MP102")
    result = tool("check", "--format", "concise", "train.py")
    assert result.exit_code == 0
    assert "train.py:2:24: MP912 [hint] This suppression is unused: there is no MP301 finding on this line." in result.stdout
    assert "Found 1 finding (1 hint) in 1 file; 1 suppressed." in result.stdout
    tool.kind = "failed"
    assert "MP912" not in tool("check", "train.py").stdout


def test_a_failed_program_is_told_once_and_its_findings_are_kept(tool: Tool) -> None:
    tool.kind, tool.message = "failed", "The program raised ValueError: no."
    tool.add("MP102")
    tool.add("MP905", line=2, message=tool.message)
    result = tool("check", "train.py")
    assert result.exit_code == 3
    assert "MP102" in result.stdout and "train.py:2:1: MP905 [error] The program raised ValueError: no." in result.stdout
    assert result.stderr == ""
    assert tool.message in tool("check", "--ignore", "MP9", "train.py").stderr, "hidden as a finding, so said on stderr"


def test_run_says_first_what_a_step_gains(tool: Tool) -> None:
    tool.regions.append(RegionSummary("r", "module", "Net", str(tool.script), 1, calls=9, captures=1, hits=7))
    tool.step = StepReport(count=9, plain=4, compiled=4, plain_ms=2.0, compiled_ms=1.0, speedup_low=1.8, speedup_high=2.2)
    out = " ".join(tool("run", "train.py").stdout.split())  # the lines are as wide as the terminal
    line = "Step: 1.00 ms compiled, 2.00 ms in eager mode (2.00x, 95% interval 1.80 to 2.20). "
    assert out.startswith(line) and out.index(line) < out.index("Regions: eager and compiled")
    assert "Parts of a step" not in out, "none were measured"
    assert json.loads(tool("run", "--format", "json", "train.py").stdout)["step"]["speedup"] == 2.0
    for limit, status in ((2.1, 0), (2.5, 1)):
        tool.pyproject(f"[tool.magpy.budgets]\nmin-speedup = {limit}\n")
        assert tool("run", "train.py").exit_code == status
    tool.step = None
    assert "Step:" not in tool("run", "train.py").stdout


def test_run_ends_with_the_table_and_shows_what_a_person_would_act_on(tool: Tool) -> None:
    tool.add("MP102")
    tool.add("MP301")
    tool.regions.append(region(eager_ms=4.0, compiled_ms=2.0, speedup_low=1.9, speedup_high=2.1))
    out = tool("run", "train.py").stdout
    assert "MP102" in out and "MP301" not in out
    assert (
        "train.py" in out and "recompiles" in out and "…" not in out.split("Regions", 1)[1]
    )  # nothing is cut in 80 columns
    assert "1 fact that needs no action: `--details` shows it." in out
    assert "2.00x" in out and "no recompiles after step 3." in out
    assert out.index("MP102") < out.index("speedup") < out.index("Total: ")
    assert "MP301" not in tool("run", "--format", "concise", "train.py").stdout
    assert "MP301" in tool("run", "--format", "concise", "--details", "train.py").stdout


# ---------------------------------------------------------------- the process itself


def run_tool(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": SEARCH}
    command = [sys.executable, "-m", "lsp_server.cli", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, **options)


def test_help_is_quick_and_imports_neither_torch_nor_rich() -> None:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        done = run_tool("--help")
        times.append(time.perf_counter() - start)
        assert done.returncode == 0 and "doctor" in done.stdout
    assert min(times) < 0.9, "the bound is 0.3 s; this machine may be busy"
    code = (
        "import sys\nfrom lsp_server.cli.main import cli\n"
        "cli(['check', '--help'], standalone_mode=False)\n"
        "print([m for m in ('torch', 'rich', 'cattrs', 'pygls', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_torch_is_never_imported_in_the_tools_process(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    code = (
        "import sys\nfrom lsp_server.cli.main import cli\n"
        "try:\n    cli(['check', 'empty.py'])\nexcept SystemExit:\n    pass\nprint('torch' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": SEARCH}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=120)
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_version() -> None:
    assert run_tool("--version").stdout == "magpy-lsp 0.1.0\n"


def test_an_error_of_our_own_is_status_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from lsp_server.cli import main as main_module

    def broken(**options: Any) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr(main_module, "cli", broken)
    with pytest.raises(SystemExit) as caught:
        main_module.main()
    assert caught.value.code == 2
    assert "RuntimeError: oops" in (err := capsys.readouterr().err) and "bug in MagPy" in err


def test_server_passes_its_status_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from lsp_server.server import main as server_main

    monkeypatch.setattr(server_main, "main", lambda: 5)
    monkeypatch.setattr(gc, "freeze", lambda: None)  # for this whole process
    assert CliRunner().invoke(cli, ["server"]).exit_code == 5


class GuardBackoff:
    """A run that lasts until it is interrupted, or (``stubborn``) until it is cancelled."""

    def __init__(self, stubborn: bool) -> None:
        self.stubborn = stubborn
        self.calls: list[str] = []
        self.listening, self.ended = threading.Event(), threading.Event()
        self.outcome = Outcome("failed", None, signal.SIGINT, "", Report("t.py"))
        self.on_interrupt: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[Message]:
        self.listening.set()
        while not self.ended.wait(0.05):
            pass
        return iter(())

    def interrupt(self) -> None:
        self.calls.append("interrupt")
        self.on_interrupt()
        if not self.stubborn:
            self.ended.set()

    def cancel(self) -> None:
        self.calls.append("cancel")
        self.ended.set()


@pytest.mark.parametrize(("stubborn", "calls"), [(False, ["interrupt"]), (True, ["interrupt", "cancel"])])
def test_ctrl_c_is_passed_on_and_the_second_one_ends_it(stubborn: bool, calls: list[str], tool: Tool) -> None:
    handle = GuardBackoff(stubborn)

    def press() -> None:
        assert handle.listening.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    if stubborn:
        handle.on_interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
    before = signal.getsignal(signal.SIGINT)
    presser = threading.Thread(target=press)
    presser.start()
    with click.Context(cli.commands["check"], info_name="check") as context:
        context.meta[PROGRAM_ARGS] = []
        params = cli.commands["check"].make_context("check", ["train.py"]).params
        (finished,) = Runs(resolve("check", [], params), lambda request, nproc: handle).follow()
    presser.join()
    assert finished.interrupted and finished.outcome is handle.outcome
    assert handle.calls == calls
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_ends_only_the_search_for_a_cause(presses: int, capsys: pytest.CaptureFixture[str], tool: Tool) -> None:
    """The second one is the first one of any other run."""
    handle = GuardBackoff(stubborn=presses == 2)
    handle.outcome = Outcome("ok", 0, None, "", Report("t.py"))
    handle.on_interrupt = lambda: os.kill(os.getpid(), signal.SIGINT) if len(handle.calls) < presses else handle.ended.set()

    class Searching(GuardBackoff):
        def __iter__(self) -> Iterator[Message]:
            yield {"type": "tracing", "seconds": 30.0, "where": ["train.py:12", "train.py:15"]}
            os.kill(os.getpid(), signal.SIGINT)
            while not handle.ended.wait(0.05):
                pass

    handle.__class__ = Searching
    with click.Context(cli.commands["run"], info_name="run") as context:
        context.meta[PROGRAM_ARGS] = []
        params = cli.commands["run"].make_context("run", ["train.py"]).params
        (finished,) = Runs(resolve("run", [], params), lambda request, nproc: handle).follow()
    said = capsys.readouterr().err
    assert "the program has ended. Compiled code differs from eager mode in train.py:12 and 1 more, and is not used" in said
    assert "for at most 30 s. Ctrl-C ends only this search; the report follows." in said
    assert handle.calls == ["interrupt"] * presses
    assert finished.interrupted is (presses == 2) and finished.completed is (presses == 1)


def test_an_interrupted_check_keeps_its_findings_and_is_status_130(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tool.add("MP102")
    real = Runs.follow
    monkeypatch.setattr(Runs, "follow", lambda runs: [replace(run, interrupted=True) for run in real(runs)])
    result = tool("check", "train.py")
    assert result.exit_code == 130
    assert "MP102" in result.stdout and "interrupted; the findings up to that point follow" in result.stderr
