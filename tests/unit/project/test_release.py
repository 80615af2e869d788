"""What publishes a release: the workflow, the recipe for conda, the mirror for pre-commit. They agree with the package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from magpy_core import __version__
from release.version import versions

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
MIRROR = ROOT / "ci" / "pre-commit-mirror"
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_every_file_names_the_same_version() -> None:
    assert set(versions().values()) == {__version__}


@pytest.mark.parametrize(("tag", "status"), [(f"v{__version__}", 0), ("v9.9.9", 1), ("nonsense", 1)])
def test_a_tag_must_be_the_version(tag: str, status: int) -> None:
    command = [sys.executable, "-m", "release.version", tag]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == status and (tag in done.stderr) == bool(status)


def test_the_workflow_is_what_github_takes() -> None:
    file = ROOT / ".github" / "workflows" / "release.yml"
    for schema in ("vendor.github-workflows", "custom.github-workflows-require-timeout"):
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_actions_are_pinned_to_commits() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert len(used) >= 8
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w.-]+@[0-9a-f]{40}", action)] == []


def test_it_builds_by_the_makefiles_targets() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    made = {found for step in STEPS for found in re.findall(r"^make ([\w-]+)", step.get("run", ""))}
    assert made == {"dist", "try-dist"} and made <= targets


def test_without_secrets_it_publishes_nothing() -> None:
    jobs = WORKFLOW["jobs"]
    assert "vars.PUBLISH_TO_INDEX == 'true'" in jobs["index"]["if"]
    assert jobs["index"]["permissions"] == {"id-token": "write"}, "trusted publishing needs this and no secret"
    publishing = [step for step in jobs["extension"]["steps"] if "publish" in step.get("run", "")]
    assert [step["if"] for step in publishing] == ["env.VSCE_PAT != ''", "env.OVSX_PAT != ''"]
    for name, job in jobs.items():
        assert name == "build" or (job["needs"] == "build" and job["if"].startswith("github.ref_type == 'tag'")), name
        texts = [step.get("run", "") for step in job["steps"]]
        assert not any("${{" in text for text in texts), "what others choose comes in variables"


def _conda(requirement: str) -> str:
    name, bounds = re.fullmatch(r"([\w.-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
    return f"{name} {bounds}".strip()


def test_the_recipe_needs_what_the_package_needs() -> None:
    needs = RECIPE["requirements"]
    low, high = PROJECT["requires-python"].removeprefix(">=").split(",")
    assert RECIPE["context"]["python_min"] == low
    assert needs["run"] == [f"python >=${{{{ python_min }}}},{high}", *map(_conda, PROJECT["dependencies"])]
    (torch,) = PROJECT["optional-dependencies"]["engine"]
    assert needs["run_constraints"] == [_conda(torch).replace("torch ", "pytorch ")]
    assert any(one == "hatchling" for one in needs["host"])


def test_the_recipe_describes_the_package() -> None:
    assert RECIPE["schema_version"] == 1 and RECIPE["package"]["name"] == PROJECT["name"]
    assert RECIPE["build"]["noarch"] == "python"
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {value}" for name, value in PROJECT["scripts"].items()]
    assert RECIPE["about"]["license"] == PROJECT["license"]["text"] and (ROOT / RECIPE["about"]["license_file"]).exists()
    assert re.fullmatch(r"[0-9a-f]{64}", RECIPE["source"]["sha256"])
    (imports,) = (test["python"]["imports"] for test in RECIPE["tests"] if "python" in test)
    subprocess.run([sys.executable, "-c", "\n".join(f"import {name}" for name in imports)], cwd=ROOT, check=True)


def test_the_mirror_is_the_hook_with_the_package() -> None:
    """The same hook, in an environment that pre-commit makes."""
    file = MIRROR / ".pre-commit-hooks.yaml"
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", str(file)], check=True)
    (own,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (hook,) = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert hook == {**own, "language": "python"}
    shown = re.search(
        r"^- repo: local\n(?:  .*\n)+", (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert shown is not None
    ((local,),) = (repository["hooks"] for repository in yaml.safe_load(shown[0]))
    assert local == {key: value for key, value in hook.items() if key != "description"} | {
        "additional_dependencies": [f"{PROJECT['name']}=={__version__}"]
    }
