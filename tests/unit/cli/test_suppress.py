"""Inline suppression and selection: which findings are left, which comments are unused."""

from __future__ import annotations

import pytest

from lsp_server.selection import Selected, Selection, apply
from lsp_server.sources import Sources, decode
from lsp_server.suppress import directives
from magpy_core.findings import Finding, Location, Position, Range, Severity

FILE = "/p/train.py"


def finding(code: str, line: int, end_line: int | None = None, file: str = FILE) -> Finding:
    """On 1-based lines."""
    return Finding(code, "m", Location(file, Range(Position(line - 1, 0), Position((end_line or line) - 1, 5))))


def left(source: str, *findings: Finding, selection: Selection | None = None, **options: bool) -> Selected:
    return apply(findings, selection or Selection(), Sources({FILE: source}), files=[FILE], **options)  # type: ignore[arg-type]


def codes(selected: Selected) -> list[str]:
    return [f"{f.code}:{f.location.range.start.line + 1}" for f in selected.findings]


def test_a_comment_hides_its_codes_on_its_line() -> None:
    source = "a()  # magpy: ignore[MP102, MP2]\nb()\n"
    result = left(source, finding("MP102", 1), finding("MP204", 1), finding("MP301", 1), finding("MP102", 2))
    assert codes(result) == ["MP301:1", "MP102:2"]
    assert result.suppressed == 2


def test_a_comment_without_codes_hides_everything_on_its_line() -> None:
    assert codes(left("a()  # magpy: ignore\nb()\n", finding("MP102", 1), finding("MP301", 2))) == ["MP301:2"]


def test_a_comment_at_the_end_of_a_multi_line_range_counts_and_one_within_does_not() -> None:
    source = "f(  # magpy: ignore[MP103]\n    x,  # magpy: ignore[MP102]\n)  # magpy: ignore[MP101]\n"
    result = left(source, *(finding(c, 1, 3) for c in ("MP101", "MP102", "MP103")), flag_unused=False)
    assert codes(result) == ["MP102:1"]


def test_ignore_file_hides_in_the_whole_file_only() -> None:
    source = "# magpy: ignore-file[MP3]\na()\nb()\n"
    other = finding("MP301", 2, file="/p/other.py")
    result = left(source, finding("MP301", 2), finding("MP305", 3), finding("MP102", 3), other)
    assert [(f.code, f.location.file) for f in result.findings] == [("MP301", "/p/other.py"), ("MP102", FILE)]


@pytest.mark.parametrize(
    "line",
    [
        's = "# magpy: ignore[MP102]"',
        "s = f'# magpy: ignore[MP102]'",
        "a()  # magpy: ignored[MP102]",
        "a()  # magpy: ignore-files[MP102]",
        "a()  # magpie: ignore[MP102]",
    ],
)
def test_what_is_no_comment_of_ours_hides_nothing(line: str) -> None:
    assert codes(left(line + "\n", finding("MP102", 1))) == ["MP102:1"]


def test_other_comments_may_stand_before_and_after() -> None:
    assert codes(left("a()  # noqa # magpy:ignore [mp102] # pragma\n", finding("MP102", 1))) == []


def test_docstring_lines_are_strings() -> None:
    assert directives('"""\n# magpy: ignore[MP1]\n"""\n') == []


def test_unused_codes_are_flagged_where_they_stand() -> None:
    source = (
        "a()  # magpy: ignore[MP102, MP301]\n# magpy: ignore-file[MP4]\nb()  # magpy: ignore\nc()  # magpy: ignore[XY1]\n"
    )
    result = left(source, finding("MP102", 1))
    assert codes(result) == ["MP912:1", "MP912:2", "MP912:3", "MP912:4"]
    assert [f.message for f in result.findings] == [
        "This suppression is unused: there is no MP301 finding on this line.",
        "This suppression is unused: there is no MP4 finding in this file.",
        "This comment suppresses nothing: there is no finding on this line.",
        "`XY1` is not a finding code or a prefix of one.",
    ]
    span = result.findings[0].location.range
    assert source[span.start.character : span.end.character] == "MP301"
    assert result.findings[0].severity is Severity.HINT


def test_unused_is_not_flagged_when_it_cannot_be_known_or_is_not_wanted() -> None:
    source = "a()  # magpy: ignore[MP102]\n"
    assert codes(left(source, flag_unused=False)) == []
    assert codes(left(source, selection=Selection(ignore=("MP912",)))) == []
    assert codes(left("a()  # magpy: ignore[MP102,MP912]\n")) == []
    library = "/v/site-packages/x.py"
    assert apply([], Selection(), Sources({library: source}), files=[library]).findings == []


def test_a_comment_for_a_deselected_code_is_not_unused() -> None:
    selection = Selection(ignore=("MP102",))
    assert codes(left("a()  # magpy: ignore[MP102]\n", finding("MP102", 1), selection=selection)) == []


@pytest.mark.parametrize(
    ("select", "ignore", "code", "expected"),
    [
        ((), (), "MP102", True),
        (("MP1",), (), "MP102", True),
        (("MP1",), (), "MP204", False),
        ((), ("MP2",), "MP204", False),
        (("MP102",), ("MP1",), "MP102", True),
        (("MP1",), ("MP102",), "MP102", False),
        (("MP102",), ("MP102",), "MP102", False),
    ],
)
def test_the_longer_prefix_wins(select: tuple[str, ...], ignore: tuple[str, ...], code: str, expected: bool) -> None:
    assert Selection(select, ignore).enabled(code) is expected


def test_severities_are_overridden_and_findings_sorted() -> None:
    result = left("", finding("MP301", 3), finding("MP102", 1), selection=Selection(severity={"MP301": Severity.ERROR}))
    assert [(f.code, f.severity) for f in result.findings] == [("MP102", Severity.WARNING), ("MP301", Severity.ERROR)]


def test_missing_and_broken_sources_suppress_nothing() -> None:
    gone = finding("MP102", 1, file="/nowhere/x.py")
    assert apply([gone], Selection(), Sources()).findings == [gone]
    assert apply([finding("MP102", 1, file="a\0b")], Selection(), Sources()).suppressed == 0
    assert codes(left("def broken(:\n  '''\n# magpy: ignore[MP102]\n", finding("MP102", 3))) == ["MP102:3"]


def test_decoding_follows_the_declared_encoding_and_never_fails() -> None:
    assert decode("# -*- coding: latin-1 -*-\ns = 'ï'".encode("latin-1")).endswith("'ï'")
    assert decode(b"\xef\xbb\xbfa = 1\r\nb = 2\rc = 3") == "a = 1\nb = 2\nc = 3"
    assert decode(b"# coding: nonsense\n\xff") == "# coding: nonsense\n\N{REPLACEMENT CHARACTER}"
    sources = Sources({FILE: "a\x0cb\nc"})
    assert sources.line(FILE, 0) == "a\x0cb" and sources.line(FILE, 1) == "c" and sources.line(FILE, 2) is None
