"""What other projects include: the scripts of Action and GitLab job run as they stand, the hook through pre-commit."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / "ci" / "magpy.gitlab-ci.yml").read_text(encoding="utf-8"))
SEARCH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A program that calls no module (MP904, a warning), and ``magpy-lsp`` on the path."""
    (tmp_path / "train.py").write_text("import sys\nprint('args', sys.argv[1:])\n")
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "magpy-lsp"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m lsp_server.cli "$@"\n')
    tool.chmod(0o755)
    return tmp_path


def environment(project: Path, **more: str) -> dict[str, str]:
    path = f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}"
    left_out = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "COLUMNS")
    return {**{k: v for k, v in os.environ.items() if k not in left_out}, "PATH": path, "PYTHONPATH": SEARCH, **more}


# ---------------------------------------------------------------- the schemas of the services


@pytest.mark.parametrize(
    ("schema", "file"), [("vendor.github-actions", "action.yml"), ("vendor.gitlab-ci", "ci/magpy.gitlab-ci.yml")]
)
def test_the_files_are_what_the_services_take(schema: str, file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / file)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- the Action


class Runner:
    """As much of GitHub's runner as the Action needs: inputs, steps with conditions, outputs, the summary."""

    def __init__(self, project: Path, **inputs: str) -> None:
        self.project = project
        known = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()}
        assert set(inputs) <= set(known)
        self.values = {f"inputs.{k}": v for k, v in {**known, **inputs}.items()} | {"github.action_path": str(ROOT)}
        self.output = ""
        self.summary = project / "summary.md"
        self.ran: list[str] = []

    def expand(self, text: str) -> str:
        return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", lambda found: self.values.get(found[1], ""), text)

    def holds(self, condition: str) -> bool:
        parts = [re.fullmatch(r"\s*([\w.-]+)\s*(==|!=)\s*'([^']*)'\s*", part) for part in condition.split("&&")]
        return all(p is not None and (self.values.get(p[1], "") == p[3]) == (p[2] == "==") for p in parts)

    def run(self) -> int:
        for step in ACTION["runs"]["steps"]:
            if not self.holds(step.get("if", "inputs.install == '" + self.values["inputs.install"] + "'")):
                continue
            assert "run" in step, "the only step that uses another action is conditional"
            self.ran.append(step["name"])
            outputs = self.project / "outputs.txt"
            outputs.write_text("")
            env = environment(
                self.project,
                GITHUB_OUTPUT=str(outputs),
                GITHUB_STEP_SUMMARY=str(self.summary),
                GITHUB_WORKSPACE=str(self.project),
                CI="true",
                **{name: self.expand(value) for name, value in step.get("env", {}).items()},
            )
            assert "${{" not in step["run"], "inputs never become text of a script"
            folder = self.project / self.expand(step.get("working-directory", "."))
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=folder, env=env, capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            self.output += done.stdout + done.stderr
            for line in outputs.read_text().splitlines():
                name, _, value = line.partition("=")
                self.values[f"steps.{step.get('id', '')}.outputs.{name}"] = value
            if done.returncode:
                return done.returncode
        return 0


def test_the_action_annotates_reports_and_fails(project: Path) -> None:
    runner = Runner(
        project, entrypoint="train.py", args="--lr\n3 4\n$(touch hacked)", install="false", python=sys.executable
    )
    assert runner.run() == 1, runner.output
    assert runner.ran == ["Check", "Result"]
    assert "args ['--lr', '3 4', '$(touch hacked)']" in runner.output and not (project / "hacked").exists()
    assert "::warning file=train.py,line=1,col=1,endColumn=1,title=MP904 no-region::" in runner.output
    assert json.loads((project / "magpy.sarif").read_text())["runs"][0]["results"][0]["ruleId"] == "MP904"
    assert json.loads((project / "magpy-report.json").read_text())["findings"]
    assert "## MagPy: `train.py`" in runner.summary.read_text()
    outputs = {name: runner.expand(spec["value"]) for name, spec in ACTION["outputs"].items()}
    assert outputs == {
        "status": "1", "sarif": str(project / "magpy.sarif"), "report": str(project / "magpy-report.json"),
    }  # fmt: skip


def test_the_action_passes_options_on_and_is_green(project: Path) -> None:
    (project / "sub").mkdir()
    shutil.copy(project / "train.py", project / "sub" / "other.py")
    (project / "sub" / "pyproject.toml").write_text("[[tool.magpy.entrypoints]]\nname = 'other'\nprogram = 'other.py'\n")
    more = {"working-directory": "sub", "fail-on": "error", "options": "--steps=1\n--statistics", "html": "page"}
    runner = Runner(project, install="false", python=sys.executable, **more)
    assert runner.run() == 0, runner.output
    assert "MP904  [warning]" in runner.output and "file=sub/other.py" in runner.output
    assert (project / "sub" / "page" / "index.html").exists()


def test_a_usage_error_is_status_2(project: Path) -> None:
    runner = Runner(project, entrypoint="train.py", options="--nonsense", install="false", python=sys.executable)
    assert runner.run() == 2 and "nonsense" in runner.output
    assert "steps.check.outputs.sarif" not in runner.values, "nothing to upload"


# ---------------------------------------------------------------- GitLab and pre-commit


def test_the_gitlab_job_writes_its_artifacts(project: Path) -> None:
    job = GITLAB[".magpy-check"]
    given = {**job["variables"], "MAGPY_ENTRYPOINT": "train.py", "MAGPY_OPTIONS": "--steps 1 --fail-on error"}
    env = environment(project, CI="true", CI_PROJECT_DIR=str(project), **given)
    script = "set -eo pipefail\n" + "\n".join(job["script"])
    done = subprocess.run(["bash", "-c", script], cwd=project, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    written = [*job["artifacts"]["reports"].values(), *job["artifacts"]["paths"]]
    assert [name for name in written if not (project / name).exists()] == []
    (issue,) = json.loads((project / "gl-code-quality-report.json").read_text())
    assert issue["check_name"] == "MP904" and issue["location"]["path"] == "train.py"
    assert "1 finding" in done.stdout


def test_the_pre_commit_hook_runs_when_asked_and_only_then(project: Path) -> None:
    if importlib_missing("pre_commit") or shutil.which("git") is None:
        pytest.skip("pre-commit or git is not installed")
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    pre_commit = [sys.executable, "-m", "pre_commit"]
    subprocess.run([*pre_commit, "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")], check=True)
    # The hook as a repository that uses it would have it, without a clone of this one.
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    (project / "pyproject.toml").write_text("[tool.magpy]\nentrypoint = 'train.py'\n")
    env = environment(project, PRE_COMMIT_HOME=str(project / "cache"), GIT_CONFIG_GLOBAL=os.devnull)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=120)

    assert run("git", "init", "-q").returncode == 0
    run("git", "add", "train.py", "pyproject.toml", ".pre-commit-config.yaml")
    assert run(*pre_commit, "run", "--all-files").stdout.strip() == "", "not at a commit"
    asked = run(*pre_commit, "run", "--all-files", "--hook-stage", "manual", "magpy-check")
    assert asked.returncode == 1 and "MP904 [warning]" in asked.stdout, asked.stdout + asked.stderr


def importlib_missing(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is None
