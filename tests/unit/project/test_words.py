"""Pages and messages are plain English, in the words of PyTorch's users.

Only rules that a pattern can check. The texts: README, docs, the pages of findings, the extension's pages and its
package.json, and the string literals of both packages. Code in backquotes counts as one word.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CODES = sorted((ROOT / "magpy_core/findings/codes").glob("*.md"))
EXTENSION = ROOT / "vscode-extension"
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *CODES,
    EXTENSION / "README.md",
    EXTENSION / "CHANGELOG.md",
    *sorted((EXTENSION / "walkthrough").glob("*.md")),
]
LONGEST = 40  # words of a sentence
#: What a text must not have: what to write instead.
PATTERNS = {
    r"[Pp]lain Python": "eager mode",
    r"\d %(?![\w%{(])|^ %(?=[ ,.;:)]|$)": "no space: 5%",
    r"\b[Ss]peed-up": "speedup",
    r"\banew\b": "again",
    r"\bmended\b": "fixed",
    r"\b(by|in) turns\b": "alternating",
    r"\bbut for\b": "except for",
    r"\b(at|in) (each|every) call\b": "on every call",
    r"\bno more\b(?! than)|\bany more\b": "no longer",
    r"\bof (its|their) own\b": "separate, or nothing",
    r"\bthat (is|are) not there\b": "without, absent",
    r"\bthe least (time|microseconds)\b|\bthe least that\b": "lower bound",
    r"\bhow (it|a run|the run) is going\b|\bgoes on\b|\bgoing on\b": "progress, continues",
    r"\blook(s|ed|ing)? at\b|[Ll]ooking at\b": "monitor, check",
    r"\bin front of\b": "before",
    r"\bbehind\b": "after",
    r"\bserved? (no|nothing|each|few|all|the|calls|such|only)\b|\bserves (?!as\b)": "is used for",
    r"\bmistakes?\b": "error",
    r", which (no |nothing )?(guards?|replay|graphs?|a graph|capture|a capture)\b": "a sentence of its own, or nothing",
    r", (which|whose) (\w+ ){0,4}?can't\b|, which (\w+ ){1,3}can do\b": "a sentence of its own, or nothing",
    r"\btoo large a\b": "too large",
    r"\brecaptur|\bcaptured again\b": "recompiled, compiled again",
    r"\bsymbolic scalar|\bRefGraph\b(?!:)": "a word of the implementation",
}

#: Words of the implementation, which no message has; pages may define them.
INTERNAL = {
    r"\b[Rr]eplay(s|ed|ing)?\b(?! as a CUDA graph)": "compiled code, make again",
    r"\b[Ss]eams?\b": "a statement outside the graph",
    r"\b[Dd]ecisions? (on|about)\b|\b[Oo]utcomes? of\b": "a branch, a result",
    r"\bfrom outside\b": "outside, that existed before",
    r"\b[Dd]raws?\b|\b[Dd]rawn (at|from|by)\b": "uses random numbers",
    r"\b[Rr]ecapture|\bcaptured (again|too often)\b": "recompile",
    r"\b(was|is|are|be|been) captured\b": "compiled, recorded",
}
#: Strings that are no messages: of generated code, of numbers that a page explains, of errors inside MagPy.
NOT_SHOWN = (
    "magpy_core/_compat/",
    "magpy_core/backends/cuda_graphs/",
    "magpy_core/capture/",
    "magpy_core/limits.py",
    "magpy_core/recording/verify.py",
    "magpy_core/refgraph/source_kinds.py",
    "magpy_core/regions/policy/phase.py",
    "magpy_core/stretches/seam_clock.py",
)


def strings_of(file: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a module, without its docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def texts_of_package_json() -> Iterator[str]:
    def walk(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for part in value.values():
                yield from walk(part)
        elif isinstance(value, list):
            for part in value:
                yield from walk(part)
        elif isinstance(value, str):
            yield value

    return walk(json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))["contributes"])


def without_code(text: str) -> str:
    """A page without its code blocks; code in backquotes is one word, and of a link only the text is left."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?: {4,}|\t)(?![-*] |\d+\. ).*", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]+`", "`code`", text)


def paragraphs(page: str) -> Iterator[str]:
    """The paragraphs, items of lists and cells of tables of a page."""
    lines: list[str] = []
    for line in [*without_code(page).splitlines(), ""]:
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        if lines and (item or not line.strip() or line.startswith(("#", "|"))):
            yield " ".join(lines)
            lines = []
        if line.startswith("|"):
            yield from (cell.strip() for cell in line.strip("|").split("|"))
        elif line.strip() and not line.startswith("#"):
            lines.append(line[item.end() :] if item else line.strip())


def sentences(page: str) -> Iterator[str]:
    for paragraph in paragraphs(page):
        yield from re.split(r"(?<=[.!?])[)`\"*]*\s+", paragraph)


def found(text: str, patterns: dict[str, str] = PATTERNS) -> list[str]:
    return [
        f"{hit.group()!r} in {text[max(0, hit.start() - 50) : hit.end() + 40]!r}: {better}"
        for pattern, better in patterns.items()
        for hit in re.finditer(pattern, text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_plain_english(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert found(re.sub(r"\s+", " ", without_code(text))) == []
    assert [sentence for sentence in sentences(text) if len(sentence.split()) > LONGEST] == []


def test_the_extension_s_texts_are_plain_english() -> None:
    assert [wrong for text in texts_of_package_json() for wrong in found(text)] == []


@pytest.mark.parametrize("package", ["magpy_core", "lsp_server"])
def test_messages_are_plain_english(package: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {each}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, text in strings_of(file)
        if " " in text.strip() or "%" in text or "magpy" in text
        for each in found(re.sub(r"`[^`]*`", "`code`", text))
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["magpy_core", "lsp_server"])
def test_messages_have_no_words_of_the_implementation(package: str) -> None:
    files = {str(file.relative_to(ROOT)): file for file in sorted((ROOT / package).rglob("*.py"))}
    wrong = [
        f"{name}:{line}: {each}"
        for name, file in files.items()
        if not name.startswith(NOT_SHOWN)
        for line, text in strings_of(file)
        if " " in text.strip() and not text.lstrip().startswith(("<", ":root", "const "))
        for each in found(re.sub(r"`[^`]*`", "`code`", text), INTERNAL)
    ]
    assert wrong == []


def test_the_rules_find_what_they_are_about() -> None:
    message = "A decision on data had another outcome of x, drawn from outside: m was captured again, and replay can't."
    assert len(found(message, INTERNAL)) == 7
    text = "It runs as plain Python at each call, which no graph can do: 5 % slower, but for a stream of its own."
    assert len(found(text)) == 7
    assert list(sentences("- One two. Three\n  four `a. b`.\n- Five\n\n| six | seven |\n")) == [
        "One two.", "Three four `code`.", "Five", "six", "seven"
    ]  # fmt: skip
