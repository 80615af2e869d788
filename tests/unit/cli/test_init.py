"""init: which programs are found, what is written, what stays, and the message if nothing is written."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from lsp_server.cli import init as init_module
from lsp_server.cli.init import init
from lsp_server.cli.main import cli
from lsp_server.config import load
from lsp_server.entrypoints import Entrypoint
from magpy_core import __version__
from tests.unit.cli.test_real import tool

MAIN = 'if __name__ == "__main__":\n    main()\n'
TRAINS = f"import torch\ndef main():\n    loss.backward()\n{MAIN}"
RUNS = f"import torch\ndef main():\n    pass\n{MAIN}"
COMMENTED = '# of the project\n[project]\nname = "x"  # a name\n\n[tool.ruff]\nline-length = 99\n'


def write(folder: Path, **files: str) -> None:
    """``a__b`` is the file ``a/b.py``."""
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*args: str) -> Result:
    return CliRunner().invoke(cli, ["init", *args])


def text_of(project: Path) -> str:
    return (project / "pyproject.toml").read_text()


def table_of(project: Path) -> object:
    return tomllib.loads(text_of(project))["tool"]["magpy"]


# ---------------------------------------------------------------- the programs


def test_a_fresh_project(project: Path) -> None:
    write(project, train=TRAINS, model="import torch\n", setup=TRAINS, tests__test_train=TRAINS, venv__lib__x=TRAINS)
    (project / "venv" / "pyvenv.cfg").touch()
    result = call()
    assert result.exit_code == 0, result.output
    assert text_of(project) == '[tool.magpy]\nentrypoint = "train.py"  # what `magpy-lsp check` runs\n'
    assert result.output == (
        "Created pyproject.toml: the entrypoint is train.py.\n"
        "Wrote .github/workflows/magpy.yml: checks every push and pull request on GitHub.\n"
        "\nNext: magpy-lsp check\n"
        "To fail on new findings only, later: magpy-lsp init --baseline --force --no-ci\n"
    )


def test_scripts_that_do_not_train_are_left_out_if_others_train(project: Path) -> None:
    write(project, train=TRAINS, sample=RUNS, tools__plot=f"import matplotlib\ndef main(): pass\n{MAIN}")
    result = call()
    assert table_of(project) == {"entrypoint": "train.py"}
    assert "Left out, as they run a model but do not train one: sample.py." in result.output


def test_a_script_whose_own_module_imports_torch(project: Path) -> None:
    write(project, train=f"from trainer import fit\ndef main(): fit()\n{MAIN}", trainer="import torch\n")
    assert call().exit_code == 0
    assert table_of(project) == {"entrypoint": "train.py"}


def test_several_programs_have_names_of_their_own(project: Path) -> None:
    write(project, gpt__train=TRAINS, cnn__train=TRAINS, tune=TRAINS)
    result = call()
    assert "the entrypoints are tune.py, cnn/train.py, gpt/train.py" in result.output
    assert load(project / "pyproject.toml").settings.entrypoints == (
        Entrypoint("tune", "tune.py"),
        Entrypoint("cnn-train", "cnn/train.py"),
        Entrypoint("gpt-train", "gpt/train.py"),
    )


@pytest.mark.parametrize("above", ["", "src__"])
def test_a_program_that_imports_from_its_package_runs_as_a_module(project: Path, above: str) -> None:
    write(project, **{f"{above}pkg__train": f"from .model import Model\n{TRAINS}"})
    (project / above.replace("__", "/") / "pkg" / "__init__.py").touch()
    assert call().exit_code == 0
    settings = load(project / "pyproject.toml").settings
    if above:
        assert settings.entrypoints == (Entrypoint("train", module="pkg.train", cwd="src"),)
    else:
        assert settings.entrypoint == "-m pkg.train"


def test_a_script_can_be_named(project: Path) -> None:
    write(project, train=TRAINS, scripts__odd="exec('the work')\n")
    assert call("scripts/odd.py").exit_code == 0
    assert table_of(project) == {"entrypoint": "scripts/odd.py"}


def test_no_entrypoint(project: Path) -> None:
    write(project, model="import torch\n", broken="def f(:\n")
    result = call()
    assert result.exit_code == 2
    assert "has no script that runs a model" in result.output and "magpy-lsp init path/to/train.py" in result.output
    assert '[tool.magpy]\n    entrypoint = "train.py"' in result.output and "magpy-lsp demo" in result.output
    assert not (project / "pyproject.toml").exists() and not (project / ".github").exists()


# ---------------------------------------------------------------- pyproject.toml


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_text_of_the_file_stays(project: Path, newline: str) -> None:
    write(project, train=TRAINS)
    before = COMMENTED.replace("\n", newline).encode()
    (project / "pyproject.toml").write_bytes(before)
    assert "Changed pyproject.toml" in call().output
    after = (project / "pyproject.toml").read_bytes()
    assert after.startswith(before + f"{newline}[tool.magpy]{newline}".encode()) and load(project / "pyproject.toml")
    assert after.count(b"\r\n") == (after.count(b"\n") if newline == "\r\n" else 0)


def test_an_existing_table_is_not_changed(project: Path) -> None:
    write(project, train=TRAINS)
    before = f"{COMMENTED}\n[tool.magpy.budgets]\nguards = 5\n"
    (project / "pyproject.toml").write_text(before)
    result = call()
    assert result.exit_code == 2 and text_of(project) == before and not (project / ".github").exists()
    assert "pyproject.toml:8 already sets MagPy up: run `magpy-lsp check`." in result.output
    assert "`magpy-lsp init --force`" in result.output


def test_force_replaces_the_entrypoints_alone(project: Path) -> None:
    write(project, train=TRAINS)
    (project / "pyproject.toml").write_text(
        f'{COMMENTED}\n[tool.magpy]  # ours\nsteps = 7\nentrypoint = "old.py"\n# limits\n[tool.magpy.budgets]\nguards = 5\n'
        '[[tool.magpy.entrypoints]]\nname = "a"\nprogram = "a.py"\nargs = [\n  "x",\n]\n'
        '[tool.magpy.entrypoints.env]\nA = "1"\n'
        "[tool.other]\nb = 1\n"
    )
    assert call("--force").exit_code == 0
    assert text_of(project) == (
        f'{COMMENTED}\n[tool.magpy]  # ours\nentrypoint = "train.py"  # what `magpy-lsp check` runs\nsteps = 7\n'
        "# limits\n[tool.magpy.budgets]\nguards = 5\n[tool.other]\nb = 1\n"
    )


@pytest.mark.parametrize(
    ("text", "force", "message"),
    [
        ("[tool\n", False, "pyproject.toml is not valid TOML"),
        ('[tool]\nmagpy = { steps = 2, entrypoint = "a.py" }\n', True, "pyproject.toml is not changed"),
        ("[tool.magpy]\nstep = 2\n", True, "`tool.magpy.step` is not a setting"),
    ],
)
def test_a_file_that_can_not_be_changed(project: Path, text: str, force: bool, message: str) -> None:
    write(project, train=TRAINS)
    (project / "pyproject.toml").write_text(text)
    result = call(*(["--force"] if force else []))
    assert result.exit_code == 2 and message in result.output and text_of(project) == text


# ---------------------------------------------------------------- the workflow


def test_without_ci(project: Path) -> None:
    write(project, train=TRAINS)
    assert "magpy.yml" not in call("--no-ci").output
    assert not (project / ".github").exists()


def test_the_workflow_is_what_github_takes(project: Path) -> None:
    write(project, sub__train=TRAINS)
    (project / "sub" / "requirements.txt").touch()
    result = call("sub")
    assert "Next: magpy-lsp check --cwd sub" in result.output
    file = project / ".github" / "workflows" / "magpy.yml"
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    job = yaml.safe_load(file.read_text())["jobs"]["check"]
    assert job["defaults"]["run"]["working-directory"] == "sub"
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[1:] == [
        f"python -m pip install -r requirements.txt magpy-lsp=={__version__}", "magpy-lsp check --format github"
    ]  # fmt: skip


@pytest.mark.parametrize("force", [False, True])
def test_an_existing_workflow_is_replaced_by_force_only(project: Path, force: bool) -> None:
    write(project, train=TRAINS)
    file = project / ".github" / "workflows" / "magpy.yml"
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")
    result = call(*(["--force"] if force else []))
    assert result.exit_code == 0 and (file.read_text() == "mine\n") is not force
    assert ("Kept .github/workflows/magpy.yml" in result.output) is not force


# ---------------------------------------------------------------- the baseline


@pytest.mark.parametrize("completed", [True, False])
def test_the_first_baseline(project: Path, capsys: pytest.CaptureFixture[str], completed: bool) -> None:
    write(project, train=TRAINS)

    def check(args: list[str]) -> int:
        assert args == ["--cwd", str(project), "--update-baseline"]
        if completed:
            (project / init_module.BASELINE).touch()
        return 0 if completed else 3

    assert init(".", force=False, ci=False, baseline=True, check=check) == (0 if completed else 3)
    assert load(project / "pyproject.toml").settings.baseline == "magpy-baseline.json"
    out = capsys.readouterr().out
    assert ("commit these files and magpy-baseline.json" in out) is completed
    assert ("there is no baseline yet" in out) is not completed


@pytest.mark.slow
def test_the_baseline_of_a_real_check(tmp_path: Path) -> None:
    work = "import torch\nfor _ in range(3):\n    print(torch.ones(2).sum())\n"
    (tmp_path / "train.py").write_text(work)
    done = tool(tmp_path, "init", "--no-ci", "--baseline")
    assert done.returncode == 0, done.stderr
    assert b"1 finding of this run written to" in done.stderr
    assert tool(tmp_path, "check").returncode == 0
