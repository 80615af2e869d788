"""Names and values of a program are text in every format: no command, no active Markdown, no element."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from lsp_server.comparison import Loaded, compare
from lsp_server.features import why_not
from lsp_server.features.hover import hover_text
from lsp_server.features.region_hover import _region
from lsp_server.formats import (
    brief,
    compared,
    compared_markdown,
    concise,
    full,
    github,
    markdown,
    regions,
    run_table,
)
from lsp_server.formats.html import compared as compared_page
from lsp_server.formats.html import page
from lsp_server.formats.view import View, clean
from magpy_core.findings import Finding, Location, Position, Range, Recompile, RegionSummary, Report, Severity, Value, WhyNot

COMMAND = "x\n::error file=a.py::planted\n  ::set-output name=b::c\n##[error]d"
IMAGE = "![i](https://evil.example/p.png) [c](command:magpy.showTriton?1) <img src=e> `![j](https://evil.example/q.png)"
ACTIVE = re.compile(r"(?<!\\)\]\(|(?<!\\)<img")
AT = Location("/p/train.py", Range(Position(0, 0), Position(0, 4)))


def report(text: str) -> Report:
    change = Recompile(2, text, text, text, "/p/train.py", 1)
    region = RegionSummary("r0", text, text, "/p/train.py", 1, calls=3, captures=1, entrypoint=text, recompiles=[change])
    finding = Finding("MP201", text, AT, hint=text, region="r0", values=(Value(text, text),))
    return Report(text, [region], [finding])


def texts(text: str) -> dict[str, str]:
    view, made = View(), report(text)
    both = compare(Loaded(report("plain"), [None]), Loaded(made, [None]), 0.2)
    blocks: dict[str, Callable[[], object]] = {
        "full": lambda: full.lines(made, view), "concise": lambda: concise.lines(made, view),
        "github": lambda: github.lines(made, view), "regions": lambda: regions.lines(made, view),
        "brief": lambda: brief.lines(made, view), "recompiles": lambda: run_table.recompiles(made, view),
        "diff": lambda: compared.lines(both, view),
    }  # fmt: skip
    return {name: "\n".join(line.plain for line in lines()) for name, lines in blocks.items()}  # type: ignore[attr-defined]


def test_no_line_of_text_is_a_command() -> None:
    for name, text in texts(COMMAND).items():
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]
        if name == "github":
            assert len(commands) == 1 and commands[0].startswith("::warning file=") and "\n" not in commands[0]
        else:
            assert commands == [], name
        assert "planted" in text or name == "concise"


def test_a_region_is_on_one_line() -> None:
    lines = texts(COMMAND)
    for name in ("regions", "brief"):
        assert len(lines[name].splitlines()) == 1, name


def test_nothing_in_markdown_is_active() -> None:
    """Outside code spans, brackets and tags are escaped; a link of ours leads to our pages."""
    view, made = View(), report(IMAGE)
    both = compare(Loaded(report("plain"), [None]), Loaded(made, [None]), 0.2)
    for text in (markdown.text(made, view, {}), compared_markdown.text(both, view, Severity.WARNING, {})):
        assert "evil" in text
        assert not ACTIVE.search(without_code(text)), text


def test_nothing_in_a_hover_is_active() -> None:
    made = report(IMAGE)
    finding = hover_text([(made.findings[0], Severity.WARNING)], markdown=True)
    why = WhyNot(
        made.regions[0].id, IMAGE, "eager", "refused", IMAGE, "MP102", IMAGE, IMAGE, "/p/a.py", 1, 5.0, rewrite=IMAGE
    )
    run: Any = SimpleNamespace(detail_of=lambda region: None, step=None, kernels=None, why_not=[why])
    of_region = without_code("\n".join(_region(made.regions[0], run)))
    assert "recompiled because of" in of_region and not ACTIVE.search(of_region), of_region
    explained = without_code(why_not.page([why]))
    assert "evil" in why_not.page([why]) and not ACTIVE.search(explained), explained
    own = without_code(finding).replace("[MP201 documentation](", "")
    assert "evil" in finding and not ACTIVE.search(own), own


@pytest.mark.parametrize("text", [IMAGE, COMMAND])
def test_a_page_has_no_element_of_the_programs(text: str) -> None:
    made = report(text)
    both = compare(Loaded(report("plain"), [None]), Loaded(made, [None]), 0.2)
    diff = compared_page.text(both, ("a", report("plain")), (IMAGE, made), View(), Severity.WARNING)
    assert "<img src=e" not in page.text(made, View()) and "<img src=e" not in diff


def without_code(text: str) -> str:
    """Markdown without its code spans, as CommonMark finds them."""
    return re.sub(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text, flags=re.S)


def test_clean() -> None:
    assert clean("a\nb\r\nc\x1b[31m") == "a b c\N{REPLACEMENT CHARACTER}[31m"
    assert clean("a\n  ::error::b\n##[c", lines=True) == "a\n  : :error::b\n# #[c"
    assert clean("x::y a::b") == "x::y a::b" and clean("::x") == ": :x"
