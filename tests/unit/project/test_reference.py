"""The reference is complete: what the code reads, offers and reports is on its page, and the page names nothing else."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from pathlib import Path

import attrs

import magpy_core
from docs import cli_page
from lsp_server.budgets import Limits
from lsp_server.config import Settings
from lsp_server.entrypoints import Entrypoint
from magpy_core.regions.api import compile as compile_function

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"
_READ = re.compile(r"""environ(?:\.get)?[\[(]\s*["'](MAGPY_\w+)["']""")


def text_of(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def rows(text: str, heading: str = "") -> list[list[str]]:
    """The cells of the rows of the first table after ``heading``."""
    lines = text[text.index(heading) :].splitlines()
    start = next(n for n, line in enumerate(lines) if re.match(r"\|[-:|]+\|$", line)) + 1
    end = next((n for n, line in enumerate(lines[start:], start) if not line.startswith("|")), len(lines))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines[start:end]]


def codes_in(cells: list[str]) -> set[str]:
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_command_line_is_what_the_commands_say() -> None:
    """If not, run ``python -m docs.cli_page``."""
    assert cli_page.PAGE.read_text(encoding="utf-8") == cli_page.page()
    assert len(list(cli_page.commands())) >= 18


def test_every_variable_that_the_code_reads_is_listed_and_no_other() -> None:
    sources = [path for folder in ("magpy_core", "lsp_server") for path in (ROOT / folder).rglob("*.py")]
    read = {name for path in sources for name in _READ.findall(path.read_text(encoding="utf-8"))}
    listed = codes_in([row[0] for row in rows(text_of("environment.md"))])
    assert len(read) >= 9 and listed == read


def test_every_variable_of_the_ci_files_is_listed_and_no_other() -> None:
    files = [ROOT / "action.yml", ROOT / "ci" / "magpy.gitlab-ci.yml"]
    used = {name for file in files for name in re.findall(r"\bMAGPY_[A-Z_]+\b", file.read_text(encoding="utf-8"))}
    assert codes_in([row[0] for row in rows(text_of("environment.md"), "## In CI files")]) == used


def test_every_setting_is_shown_and_valid() -> None:
    main, entrypoint, budgets, *_ = re.findall(r"```toml\n(.*?)```", text_of("settings.md"), re.DOTALL)
    table = tomllib.loads(main)["tool"]["magpy"]
    names = {field.name.replace("_", "-") for field in attrs.fields(Settings)}
    assert {*table} == names - {"budgets", "entrypoints"}
    (shown,) = tomllib.loads(entrypoint)["tool"]["magpy"]["entrypoints"]
    assert {*shown, "module"} == {field.name.replace("_", "-") for field in attrs.fields(Entrypoint)} - {"line"}
    limits = tomllib.loads(budgets)["tool"]["magpy"]["budgets"]
    assert {*limits} - {"regions"} == {field.name.replace("_", "-") for field in attrs.fields(Limits)}


def test_the_thirteen_names_and_the_options_of_compile() -> None:
    text = text_of("api.md")
    names = [row[0].strip("`").partition("(")[0] for row in rows(text, "## The thirteen names")]
    assert sorted(names) == sorted(magpy_core._API) and len(names) == 13
    options = codes_in([row[0] for row in rows(text, "## Options of")])
    assert options == {*inspect.signature(compile_function).parameters} - {"target"}


def test_every_key_of_a_report_is_described() -> None:
    schema = json.loads((ROOT / "magpy_core/findings/report.schema.json").read_text(encoding="utf-8"))
    assert codes_in([row[0] for row in rows(text_of("json.md"))]) == {*schema["properties"]}


def test_each_row_of_the_limits_has_a_verdict() -> None:
    found = rows(text_of("limits.md"), "## What you use")
    assert len(found) >= 25
    assert {row[1] for row in found[:-1]} == {"works", "partly", "eager"} and "not supported" in found[-1][2]
