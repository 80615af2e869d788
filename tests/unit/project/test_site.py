"""The site: every page is in it, where ``magpy-lsp docs`` opens it; wrong links fail the build; nothing is loaded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from lsp_server.cli.docs import CODES, PACKAGE, address, pages
from magpy_core.findings import REGISTRY

ROOT = Path(__file__).resolve().parents[3]
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
GUIDES = sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md"))
SKIPPED = shutil.ignore_patterns(".*", "node_modules", "artifacts", "site-packages", "__pycache__")


def named_in_nav(nav: object) -> set[str]:
    """The pages that ``nav`` names, its globs expanded."""
    if isinstance(nav, str):
        return {file.relative_to(ROOT).as_posix() for file in ROOT.glob(nav)} if "*" in nav else {nav}
    assert isinstance(nav, dict | list)
    return set().union(*map(named_in_nav, nav.values() if isinstance(nav, dict) else nav))


# ---------------------------------------------------------------- without building it


def test_the_navigation_names_every_page() -> None:
    named = named_in_nav(CONFIG["nav"])
    codes = {f"{CODES}/{code}.md" for code in REGISTRY}
    stages = {file.relative_to(ROOT).as_posix() for file in (ROOT / "magpy_core").rglob("README.md")}
    assert len(GUIDES) >= 8 and len(stages) >= 17
    assert {*GUIDES, *codes, *stages, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= named
    assert [page for page in named - {f"{CODES}/index.md"} if not (ROOT / page).is_file()] == []


def test_nothing_comes_from_elsewhere_and_every_kind_of_link_is_checked() -> None:
    assert CONFIG["theme"]["font"] is False and "offline" in CONFIG["plugins"]
    assert CONFIG["strict"] is True
    assert CONFIG["validation"]["nav"].keys() >= {"omitted_files", "not_found"}
    assert CONFIG["validation"]["links"].keys() >= {"not_found", "anchors", "unrecognized_links"}
    assert {level for kinds in CONFIG["validation"].values() for level in kinds.values()} == {"warn"}


# ---------------------------------------------------------------- built


def build(root: Path, into: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mkdocs", reason="the site is built with the packages of the extra dev")
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": search, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(root / "mkdocs.yml")]
    return subprocess.run(
        [*command, "--site-dir", str(into)], cwd=root, env=env, capture_output=True, text=True, timeout=200
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    done = build(ROOT, into)
    assert done.returncode == 0, done.stderr
    return into


def html_of(site: Path) -> dict[Path, str]:
    return {file: file.read_text(encoding="utf-8") for file in site.rglob("*.html")}


def test_the_site_builds_without_a_warning(site: Path) -> None:
    sources = [page.source for page in pages(PACKAGE).values()] + [
        f"magpy_core/findings/codes/{code}.md" for code in REGISTRY
    ]
    missing = [source for source in sources if not (site / address(source)).is_file()]
    assert missing == []
    start = (site / "index.html").read_text(encoding="utf-8")
    assert "operator graphs" in start and 'src="docs/images/vscode.png"' in start


def test_links_and_files_of_the_site_are_there(site: Path) -> None:
    """MkDocs checks the links of Markdown; this looks at all that the HTML names, the theme's own included."""
    checked = 0
    for file, html in html_of(site).items():
        for target in re.findall(r'(?:href|src)="([^"#]+)[^"]*"', html):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or not parts.path or file.name == "404.html":
                continue
            checked += 1
            assert (file.parent / unquote(parts.path)).exists(), f"{file.relative_to(site)}: {target}"
    assert checked > 4_000


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    scripts = r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//'
    styles = r'<link\b[^>]*\brel="(?:stylesheet|preconnect|preload)"[^>]*\bhref="(?:https?:)?//'
    loaded = re.compile(f"{scripts}|{styles}")
    assert [str(file) for file, html in html_of(site).items() if loaded.search(html)] == []
    sheets = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert sheets and not any(re.search(r"url\(['\"]?(https?:)?//|@import", text) for text in sheets)


def test_the_index_of_the_search_is_a_script_that_a_file_can_load(site: Path) -> None:
    index = (site / "search/search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = ")
    for text in ("codes/MP102/index.html", "docs/reference/settings.html#budgets", "Repeated blocks"):
        assert text in index
    (bundle,) = (site / "assets/javascripts").glob("bundle.*.min.js")
    assert "search/search_index.js" in bundle.read_text(encoding="utf-8"), (
        "what the theme loads where there is no web server"
    )
    assert '<script src="iframe-worker.js">' in (site / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The pages in a folder of their own, to change them."""
    root = tmp_path / "repository"
    for name in ("docs", "examples", "vscode-extension", "magpy_core", "lsp_server", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, root / name, ignore=lambda folder, names: _without_code(folder, names))
    for file in (*ROOT.glob("*.md"), ROOT / "mkdocs.yml", ROOT / "LICENSE", ROOT / "action.yml"):
        shutil.copy(file, root)
    return root


def _without_code(folder: str, names: list[str]) -> set[str]:
    kept = (".md", ".png", ".svg", ".json", ".js", ".css")
    unneeded = {name for name in names if (Path(folder) / name).is_file() and not name.endswith((*kept, "hooks.py"))}
    large = {"site"} if Path(folder).name == "lsp_server" else set()
    return {*SKIPPED(folder, names), *unneeded, *large}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "text", "warning"),
    [
        ("docs/how-to/ci.md", "[lost](nowhere.md)", "nowhere.md"),
        ("docs/how-to/ci.md", "[lost](../reference/cli.md#nowhere)", "nowhere"),
        ("docs/how-to/ci.md", "[lost](../../action.yaml)", "action.yaml"),
        ("docs/how-to/ci.md", "[lost](../../benchmarks/)", "unrecognized relative link '../../benchmarks/'"),
        ("docs/how-to/new.md", "# A page that the navigation does not name", "docs/how-to/new.md"),
    ],
    ids=["page", "anchor", "file", "folder", "omitted"],
)
def test_a_mistake_fails_the_build(copy: Path, tmp_path: Path, page: str, text: str, warning: str) -> None:
    with (copy / page).open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")
    done = build(copy, tmp_path / "built")
    assert done.returncode != 0 and warning in done.stderr
    assert done.stderr.count("WARNING") == 1, done.stderr
