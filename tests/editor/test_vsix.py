"""The package as it would be published: small, complete, and nothing in it that need not be."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from release.bundle import bundle

EXTENSION = Path(__file__).parents[2] / "vscode-extension"
LIMIT = 5_000_000
BUNDLED = EXTENSION / "bundled"


@pytest.fixture(scope="module")
def vsix(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if shutil.which("npm") is None or not (EXTENSION / "node_modules").is_dir():
        pytest.skip("the extension's tools are not installed: npm --prefix vscode-extension ci")
    bundle(BUNDLED)
    path = tmp_path_factory.mktemp("vsix") / "magpy.vsix"
    command = ["npm", "run", "--silent", "package", "--", "--out", str(path)]
    ended = subprocess.run(command, cwd=EXTENSION, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert path.stat().st_size <= LIMIT, f"{path.stat().st_size:,} bytes"
    return zipfile.ZipFile(path)


def _extension_files(vsix: zipfile.ZipFile) -> set[str]:
    return {name.removeprefix("extension/") for name in vsix.namelist() if name.startswith("extension/")}


def test_it_holds_what_is_needed_and_nothing_else(vsix: zipfile.ZipFile) -> None:
    files = _extension_files(vsix)
    pages = {"dist/extension.js", "dist/graph.js", "dist/run.js", "package.json"}
    assert pages | {"images/icon.png", "images/view.svg", "images/bracket-first.svg"} <= files
    pictures = r"images/[\w-]+\.(png|svg)|walkthrough/\w+\.md"
    allowed = re.compile(rf"dist/(extension|graph|run)\.js|{pictures}|package\.json|(readme|changelog)\.md|LICENSE\.txt")
    bundled = {path.relative_to(EXTENSION).as_posix() for path in BUNDLED.rglob("*") if path.is_file()}
    assert bundled - files == set()
    assert [name for name in sorted(files - bundled) if not allowed.fullmatch(name)] == []


def test_all_that_it_names_is_in_it(vsix: zipfile.ZipFile) -> None:
    files = _extension_files(vsix)
    manifest = json.loads(vsix.read("extension/package.json"))
    contributed = manifest["contributes"]
    named = {manifest["icon"], manifest["main"].removeprefix("./")}
    named |= {container["icon"] for container in contributed["viewsContainers"]["activitybar"]}
    for step in (step for walkthrough in contributed["walkthroughs"] for step in walkthrough["steps"]):
        named |= {step["media"][kind] for kind in ("image", "markdown") if kind in step["media"]}
    readme = vsix.read("extension/readme.md").decode()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", readme)
    assert len(pictures) >= 3
    named |= set(pictures)
    assert named <= files, named - files


def test_the_manifest_is_one_for_a_marketplace(vsix: zipfile.ZipFile) -> None:
    manifest = json.loads(vsix.read("extension/package.json"))
    for key in (
        "displayName",
        "description",
        "publisher",
        "license",
        "categories",
        "icon",
    ):
        assert manifest.get(key), key
    assert len(manifest["keywords"]) <= 30
    code = vsix.read("extension/dist/extension.js").decode()
    assert "sourceMappingURL" not in code
    assert "telemetry" not in json.dumps(manifest["contributes"]).lower()
