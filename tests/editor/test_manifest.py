"""The extension's manifest and the server agree: commands, settings, codes, trust."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import attrs

from lsp_server.config import BACKENDS
from lsp_server.entrypoints import Entrypoint
from lsp_server.features import codelens
from lsp_server.features.settings import Settings, parse_settings
from magpy_core import __version__
from magpy_core.findings import REGISTRY, Severity
from magpy_core.runner.request import DEVICES

EXTENSION = Path(__file__).parents[2] / "vscode-extension"
MANIFEST: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text())
PROPERTIES: dict[str, Any] = MANIFEST["contributes"]["configuration"]["properties"]
SERVER_COMMANDS = {codelens.CHECK, codelens.RUN_COMPILED, codelens.COMPARE, codelens.CANCEL, codelens.CLEAR}


def test_version() -> None:
    assert MANIFEST["version"] == __version__


def test_commands_do_not_collide_with_those_the_client_registers() -> None:
    own = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    assert not own & SERVER_COMMANDS
    source = (EXTENSION / "src" / "commands.ts").read_text()
    tools = dict(re.findall(r'(\w+): \{ command: "(magpy\.\w+)"', (EXTENSION / "src" / "tools.ts").read_text()))
    registered = re.findall(r'^    (?:"(magpy\.\w+)"|\[TOOLS\.(\w+)\.command\]):', source, re.MULTILINE)
    assert own == {literal or tools[tool] for literal, tool in registered}, "contributed is registered"


def test_the_extension_knows_the_servers_commands() -> None:
    source = (EXTENSION / "src" / "protocol.ts").read_text()
    named = set(re.findall(r'"(magpy\.\w+)"', source))
    assert named == SERVER_COMMANDS


def test_default_settings_are_accepted_and_are_the_servers_defaults() -> None:
    defaults = {name.removeprefix("magpy."): spec["default"] for name, spec in PROPERTIES.items()}
    assert parse_settings(defaults) == (Settings(), [])


def test_backends_and_severities_are_the_same() -> None:
    assert tuple(PROPERTIES["magpy.backend"]["enum"]) == ("", *BACKENDS)
    (pattern, values), *others = PROPERTIES["magpy.severity"]["patternProperties"].items()
    assert not others
    assert values["enum"] == [*(s.value for s in Severity), "off"]
    assert all(re.fullmatch(pattern.strip("^$"), code) and re.fullmatch(pattern.strip("^$"), code[:3]) for code in REGISTRY)


def test_devices_are_those_that_kernels_can_be_made_for() -> None:
    described = dict(zip(PROPERTIES["magpy.target"]["enum"], PROPERTIES["magpy.target"]["enumDescriptions"], strict=True))
    assert list(described)[:2] == ["", "none"]
    assert {name: described[name] for name in list(described)[2:]} == {one.target: one.title for one in DEVICES.values()}


def test_entrypoints_are_those_of_the_projects_table() -> None:
    described = PROPERTIES["magpy.entrypoints"]["items"]["properties"]
    known = {field.name for field in attrs.fields(Entrypoint)}
    assert set(described) == known - {"timeout"}  # the setting magpy.timeout is for all of them
    assert PROPERTIES["magpy.entrypoints"]["items"]["additionalProperties"] is False


def test_what_programs_are_run_with_is_set_per_folder() -> None:
    windows = {"magpy.interpreter", "magpy.revealOutput", "magpy.trace.server"}
    assert {name for name, spec in PROPERTIES.items() if spec["scope"] != "resource"} == windows


def test_nothing_runs_or_shows_by_itself() -> None:
    assert PROPERTIES["magpy.runOnSave"]["default"] is False
    assert PROPERTIES["magpy.inlayHints"]["default"] is False
    assert MANIFEST["activationEvents"] == ["onLanguage:python"]


def test_untrusted_workspaces_are_refused() -> None:
    assert MANIFEST["capabilities"]["untrustedWorkspaces"]["supported"] is False
    starting = (EXTENSION / "src" / "starting.ts").read_text()
    assert starting.count("requireTrust();") == 4, "a run, what every run is asked by, compare and the comparison as a task"
    assert "isTrusted" in (EXTENSION / "src" / "extension.ts").read_text()
    assert "isTrusted" in (EXTENSION / "src" / "server.ts").read_text()


def test_nothing_committed_names_a_registry() -> None:
    assert '"resolved"' not in (EXTENSION / "package-lock.json").read_text()
