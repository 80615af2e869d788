"""The pages about the source: short, in every stage, and naming only files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from magpy_core.findings import REGISTRY

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "magpy_core"
CORPUS = ROOT / "tests/soundness/corpus"
STAGES = sorted(path for path in CORE.iterdir() if (path / "__init__.py").exists())
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
READMES = [*sorted(CORE.glob("*/README.md")), ROOT / "lsp_server/README.md"]
PAGES = [ARCHITECTURE, *READMES, ROOT / "CONTRIBUTING.md", ROOT / "docs/reference/limits.md", ROOT / "docs/tour.py"]
# A path in code quotes: it has a suffix, or ends in a slash.
_PATH = re.compile(r"`([\w./-]+(?:\.(?:py|md|toml|json|yml|txt)|/))(?:::\w+)?`")
# A type, perhaps with a member.
_NAME = re.compile(r"`([A-Z]\w*[a-z]\w*(?:\.\w+)?)`")
_LINK = re.compile(r"\]\(([^)#:]+)\)")
SOURCE = "\n".join(
    path.read_text(encoding="utf-8") for folder in (CORE, ROOT / "lsp_server") for path in folder.rglob("*.py")
)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def paths_in(page: Path) -> set[str]:
    return set(_PATH.findall(text_of(page)))


def size_of(page: Path) -> int:
    return len(page.read_bytes())


def test_the_map_is_short() -> None:
    assert size_of(ARCHITECTURE) <= 9 * 1024


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_the_page_of_a_stage_is_short_and_has_its_parts(page: Path) -> None:
    text = text_of(page)
    assert size_of(page) <= 4 * 1024
    assert text.startswith(f"# {page.parent.name}: ") and "**Noun:**" in text
    assert "\n## Invariants\n" in text and "\n## Boundary\n" in text


def test_every_stage_has_a_page_and_a_row_of_the_map() -> None:
    assert len(STAGES) >= 13
    rows = re.findall(r"^\| `(\w+)/` \|", text_of(ARCHITECTURE), re.MULTILINE)
    for stage in STAGES:
        assert (stage / "README.md").exists() and stage.name in rows, stage.name
    assert all((CORE / row).is_dir() for row in rows)


def test_the_map_has_the_stages_in_the_order_of_imports() -> None:
    config = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    layers = next(c for c in config["tool"]["importlinter"]["contracts"] if c["name"] == "Stages import downwards only")
    order = [name.strip() for layer in layers["layers"] for name in layer.split("|")]
    rows = re.findall(r"^\| `(\w+)/` \|", text_of(ARCHITECTURE), re.MULTILINE)
    assert [row for row in rows if row in order] == order


@each_page
def test_every_path_exists(page: Path) -> None:
    for path in paths_in(page):
        places = [ROOT, CORE, page.parent, *([CORPUS] if page.parent.name == "recording" else [])]
        assert any((place / path).exists() for place in places), path


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(text_of(page)) if page.suffix == ".md" else []:
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", [ARCHITECTURE, *READMES], ids=lambda page: page.parent.name)
def test_every_type_named_exists(page: Path) -> None:
    names = {part for name in _NAME.findall(text_of(page)) for part in name.split(".")}
    missing = {name for name in names if not re.search(rf"\b{name}\b", SOURCE)}
    assert not missing


def test_pages_name_many_paths() -> None:
    assert len(paths_in(ARCHITECTURE)) >= 25
    assert all(len(paths_in(page)) >= 3 for page in READMES)


def test_the_table_of_features_has_every_tracker_of_nodes() -> None:
    named = paths_in(CORE / "recording/README.md")
    trackers = {f"nodes/{path.name}" for path in (CORE / "recording/nodes").glob("*.py") if path.stem != "__init__"}
    assert trackers <= named


def test_every_event_with_a_handler_is_in_the_table_of_events() -> None:
    text = text_of(CORE / "recording/README.md")
    table = text[text.index("| event | handler |") : text.index("## Features")]
    source = (CORE / "recording/recording.py").read_text(encoding="utf-8")
    handlers = source[source.index("def _handlers") : source.index("def _forget")]
    events = " ".join(re.findall(r': "([a-z_ ]+)"', handlers)).split()
    assert len(events) >= 35
    for event in events:
        assert f"`{event}`" in table, event


def test_laws_are_cited_by_a_name_that_the_map_has() -> None:
    laws = re.findall(r"^\d+\. \*\*([^*]+)\*\*", text_of(ARCHITECTURE), re.MULTILINE)
    names = [law.replace("`", "") for law in laws]
    assert len(names) == 10
    cited = []
    for folder in (CORE, ROOT / "lsp_server"):
        for path in [*folder.rglob("*.py"), *folder.rglob("README.md")]:
            text = text_of(path)
            assert not re.search(r"\b[Ll]aw \d", text), f"{path}: laws are cited by name"
            for line in re.findall(r"\b[Ll]aws?: ([^\n.,)]+)", text.replace("`", "")):
                cited += [law.strip() for law in line.split(";")]
    assert len(cited) >= 8
    for law in cited:
        assert law in names, law


def test_limits_name_codes_that_exist() -> None:
    codes = set(re.findall(r"\bMP[D\d]\d+\b", text_of(ROOT / "docs/reference/limits.md")))
    assert len(codes) >= 14 and codes <= set(REGISTRY)


def test_pages_of_stages_are_not_installed() -> None:
    build = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["hatch"]["build"]["targets"]
    assert "README.md" in build["wheel"]["exclude"] and "/ARCHITECTURE.md" in build["sdist"]["include"]


def test_each_version_of_the_changelog_is_short() -> None:
    """A user's summary by what it does: git has the history."""
    versions = re.split(r"^## ", text_of(ROOT / "CHANGELOG.md"), flags=re.M)[1:]
    assert [version.splitlines()[0] for version in versions][-1] == "[0.1.0]"
    for version in versions:
        assert len(version.strip().splitlines()) <= 30, version.splitlines()[0]
