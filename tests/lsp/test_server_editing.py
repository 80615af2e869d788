"""Findings while the text is edited, hover and code lenses, over stdio."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.lsp.client import OMIT, VSCODE, Client
from tests.lsp.conftest import PROGRAM, Lab

pytestmark = pytest.mark.asyncio

FOUND = """
    hello()
    values = [("x.`sum`()", "a | b *c*")]
    finding("MP102", 5, 29, 43, "`x.sum().item()` is `read`", values=values, path=[(11, 4, 22)], count=3)
    finding("MP204", 5, 29, 30, "x is a tensor", severity="hint")
    region(4)
    end()
"""
# Code units before and after `x.sum().item()` in line 5, which has one smiley before it.
AT = (30, 44)


async def _checked(client: Client, lab: Lab, text: str | None = None) -> str:
    lab.scenario(FOUND)
    uri = client.open(lab.program, text)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: len(d) == 2, "both findings")
    return uri


def _lines(found: list[Any]) -> set[int]:
    return {d["range"]["start"]["line"] for d in found}


def _reads(found: list[Any]) -> list[Any]:
    return [d for d in found if d["code"] == "MP102"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ((0, 0, 0, 0, "# 漢字 🙂\n# more\n"), 7),  # lines put in above
        ((1, 0, 2, 0, ""), 4),  # a line above taken out
        ((5, 0, 5, 0, "\n"), 6),  # Enter at the start of the line
        ((4, 25, 4, 25, "\n        "), 6),  # Enter at the end of the line above
        ((5, 44, 5, 44, "\n        "), 5),  # Enter at its own end
        ((6, 8, 6, 16, "return 0"), 5),  # the line below changed
        ((6, 0, 7, 0, ""), 5),  # the line below taken out
        ((0, 5, 0, 5, " # 🙂"), 5),  # another line changed
    ],
)
async def test_edits_elsewhere_move_findings(
    client: Client, lab: Lab, change: tuple[int, int, int, int, str], line: int
) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, change)
    # A second change marks the moment: its publication follows that of the first.
    client.change(uri, 3, (13 if line < 7 else 15, 0, 13 if line < 7 else 15, 0, ""))
    await client.until(
        lambda: any(p["uri"] == uri and p.get("version") == 3 for p in client.all("textDocument/publishDiagnostics")),
        "version 3",
    )
    (read,) = _reads(client.diagnostics(uri))
    start, end = read["range"]["start"], read["range"]["end"]
    assert (start["line"], start["character"], end["line"], end["character"]) == (line, AT[0], line, AT[1])


@pytest.mark.parametrize(
    "change",
    [
        (5, 16, 5, 18, "🙂🙂"),  # before it in its line, past a surrogate pair
        (5, 30, 5, 31, "z"),  # itself
        (5, 44, 5, 44, "  # why"),  # after it in its line
        (5, 0, 6, 0, ""),  # gone
        (4, 25, 5, 8, ""),  # joined to the line above
        (5, 44, 6, 8, " "),  # the line below joined to it
        (3, 0, 9, 0, "pass\n"),  # replaced with others
    ],
)
async def test_edits_of_the_line_drop_its_findings(client: Client, lab: Lab, change: tuple[int, int, int, int, str]) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, change)
    await client.diagnostics_where(uri, lambda d: d == [], "none")


async def test_undo_brings_them_back(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, (5, 14, 5, 14, "🙂"))
    await client.diagnostics_where(uri, lambda d: d == [], "none")
    client.change(uri, 3, (5, 14, 5, 16, ""))
    found = await client.diagnostics_where(uri, lambda d: len(d) == 2, "both")
    assert _reads(found)[0]["range"]["start"] == {"line": 5, "character": AT[0]}


async def test_undo_brings_them_back_in_a_file_with_other_edits(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, (0, 0, 0, 0, "#\n"))
    client.change(uri, 3, (6, 14, 6, 14, "🙂"))
    await client.diagnostics_where(uri, lambda d: d == [], "none")
    client.change(uri, 4, (6, 0, 6, 0, "\n"))
    client.change(uri, 5, (7, 14, 7, 16, ""))
    found = await client.diagnostics_where(uri, lambda d: len(d) == 2, "both")
    assert _reads(found)[0]["range"]["start"] == {"line": 7, "character": AT[0]}


async def test_several_changes_in_one_message(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, (0, 0, 0, 0, "a\n"), (0, 0, 0, 0, "b\n"), (8, 0, 9, 0, ""))
    await client.diagnostics_where(uri, lambda d: _lines(d) == {7}, "moved by two")


async def test_a_whole_new_text_keeps_what_is_the_same(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    text = "# one\n" + PROGRAM.replace("return y", "return y + 1")
    document = {"uri": uri, "version": 2}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
    await client.diagnostics_where(uri, lambda d: _lines(d) == {6}, "moved by one")


async def test_findings_that_arrive_while_typing_are_placed_right(client: Client, lab: Lab) -> None:
    lab.gate("edited")
    lab.scenario("""
        hello()
        gate("edited")
        finding("MP102", 5, 29, 43, "late")
        finding("MP103", 6, 8, 16, "its line was changed")
        end()
    """)
    uri = client.open(lab.program)
    client.begin_command("magpy.check", {"uri": uri})
    await client.status(state="running")
    client.change(uri, 2, (0, 0, 0, 0, "#\n#\n"), (8, 15, 8, 16, "z"))
    await client.sync()
    await asyncio.to_thread(lab.open_gate, "edited")
    found = await client.diagnostics_where(uri, lambda d: d, "the late one")
    assert [(d["message"], d["range"]["start"]["line"]) for d in found] == [("late", 7)]
    await client.status(state="done")
    await client.sync()
    assert [d["message"] for d in client.diagnostics(uri)] == ["late"]


async def test_an_unsaved_text_is_compared_with_what_ran(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab, "# not saved\n" + PROGRAM)
    assert _lines(client.diagnostics(uri)) == {6}


async def test_a_closed_file_follows_the_disk(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, (0, 0, 0, 0, "# unsaved\n"))
    await client.diagnostics_where(uri, lambda d: _lines(d) == {6}, "moved")
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await client.diagnostics_where(uri, lambda d: _lines(d) == {5}, "as on disk")
    lab.program.write_text("#\n#\n#\n" + PROGRAM, encoding="utf-8")
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
    await client.diagnostics_where(uri, lambda d: _lines(d) == {8}, "as on disk now")
    lab.program.unlink()
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 3}]})
    await client.diagnostics_where(uri, lambda d: d == [], "gone")


async def test_a_file_opened_through_a_link(client: Client, lab: Lab) -> None:
    link = lab.folder / "link.py"
    link.symlink_to(lab.program)
    lab.scenario(FOUND.replace("finding(", "finding(").replace("region(4)", "region(4)"))
    uri = client.open(link)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: len(d) == 2, "under the name it was opened by")
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await client.diagnostics_where(lab.program.as_uri(), lambda d: len(d) == 2, "under its own name")
    assert client.diagnostics(uri) == []


async def test_related_places_move_too(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, (8, 0, 8, 0, "\n"))
    await client.until(
        lambda: _reads(client.diagnostics(uri))[0].get("relatedInformation", [{}])[0]
        .get("location", {}).get("range", {}).get("start", {}).get("line") == 12,
        "the call moved down",
    )  # fmt: skip
    client.change(uri, 3, (12, 4, 12, 4, "x"))
    await client.until(lambda: "relatedInformation" not in _reads(client.diagnostics(uri))[0], "a changed call is left out")


async def test_findings_inside_a_library_are_shown_at_the_users_call(client: Client, lab: Lab) -> None:
    library = lab.folder / "site-packages" / "lib.py"
    library.parent.mkdir()
    library.write_text("a\nb\n")
    lab.scenario(f"""
        hello()
        script, library = request["script"], {str(library)!r}
        way = [{{"file": f, "range": span(*at), "function": "g"}} for f, at in ((script, (11, 4, 22)), (library, (0, 0, 1)))]
        for n in range(3):
            finding("MP102", 1, 0, 1, f"item {{n}}", file=library, way=way)
        finding("MP204", 1, 0, 1, "a guard of the library's", file=library, severity="hint", way=way)
        finding("MP103", 1, 0, 1, "no way of the user's", file=library)
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    found = await client.diagnostics_where(uri, lambda d: d and "2 similar" in d[0]["message"], "one for three")
    assert len(found) == 1 and found[0]["range"]["start"] == {"line": 11, "character": 4}
    related = [(r["location"]["uri"], r["location"]["range"]["start"]["line"]) for r in found[0]["relatedInformation"]]
    assert related == [(library.as_uri(), 1)]
    own = await client.diagnostics_where(library.as_uri(), lambda d: d, "the one without a way")
    assert [d["code"] for d in own] == ["MP103"]


async def test_dozens_of_a_kind_on_one_range_are_few_diagnostics(client: Client, lab: Lab) -> None:
    lab.scenario("""
        hello()
        for letter in "abcdefghijklmnopqrst":
            finding("MP102", 5, 29, 43, f"item {letter}")
        finding("MP103", 5, 29, 43, "another kind")
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    found = await client.diagnostics_where(uri, lambda d: any("17 similar" in x["message"] for x in d), "three for twenty")
    assert [d["code"] for d in found] == ["MP102", "MP102", "MP102", "MP103"]


async def test_other_encodings(server: Client, lab: Lab) -> None:
    capabilities = {**VSCODE, "general": {"positionEncodings": ["utf-8", "utf-16"]}}
    server.settings = {"interpreter": str(lab.python)}
    result = await server.initialize(capabilities, folder=lab.folder)
    assert result["capabilities"]["positionEncoding"] == "utf-8"
    uri = await _checked(server, lab)
    (read,) = _reads(server.diagnostics(uri))
    assert read["range"]["start"]["character"] == 29 + 1 + 3


async def _hover(client: Client, uri: str, line: int, character: int) -> Any:
    return await client.request(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
    )


async def test_hover_says_why_and_what_to_do(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    hover = await _hover(client, uri, 5, 31)
    assert hover["contents"]["kind"] == "markdown"
    text = hover["contents"]["value"]
    assert "**MP102** host-read · warning" in text and "*Why:*" in text
    assert "*What to do:* Do it outside." in text
    assert "- ``x.`sum`()`` = `a | b *c*`" in text, "values are code, whatever is in them"
    assert "found 3 times" in text and "costs 1.5 ms per step between its graphs" in text
    assert "/MP102.md)" in text and "**MP204**" in text
    assert text.index("MP102") < text.index("MP204"), "the worst first"
    assert await _hover(client, uri, 5, 10) is None
    assert await _hover(client, uri, 4, 5) is None


async def test_hover_follows_edits(client: Client, lab: Lab) -> None:
    uri = await _checked(client, lab)
    client.change(uri, 2, (0, 0, 0, 0, "\n\n\n"))
    assert await _hover(client, uri, 5, 31) is None
    assert (await _hover(client, uri, 8, 40))["range"]["start"]["line"] == 8


async def test_hover_in_plain_text(server: Client, lab: Lab) -> None:
    await server.initialize({}, folder=lab.folder, options={"settings": {"interpreter": str(lab.python)}})
    uri = await _checked(server, lab)
    contents = (await _hover(server, uri, 5, 31))["contents"]
    assert contents["kind"] == "plaintext"
    assert "**" not in contents["value"] and "MP102 host-read (warning)" in contents["value"]


async def _lenses(client: Client, uri: str) -> list[tuple[int, str, str]]:
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return [(lens["range"]["start"]["line"], lens["command"]["title"], lens["command"]["command"]) for lens in lenses]


async def test_lenses_on_an_entrypoint(client: Client, lab: Lab) -> None:
    uri = client.open(lab.program)
    assert await _lenses(client, uri) == [(9, "Check", "magpy.check"), (9, "Run compiled", "magpy.runCompiled")]
    client.change(uri, 2, (0, 0, 0, 0, "\n"))
    assert [line for line, *_ in await _lenses(client, uri)] == [10, 10]
    client.settings = {"codeLens": False}
    assert await _lenses(client, uri) == []


async def test_lenses_while_running_and_after(client: Client, lab: Lab) -> None:
    lab.gate("end")
    lab.scenario('hello()\nregion(4)\ngate("end")\nend()')
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    await client.status(state="running")
    assert (9, "Checking… (click to cancel)", "magpy.cancel") in await _lenses(client, uri)
    refreshes = len([m for m in client.requested if m["method"] == "workspace/codeLens/refresh"])
    await asyncio.to_thread(lab.open_gate, "end")
    await answer
    await client.until(
        lambda: len([m for m in client.requested if m["method"] == "workspace/codeLens/refresh"]) > refreshes, "a refresh"
    )
    assert (9, "1 graph · 0 breaks · 14 guards · 2 side effects", "") in await _lenses(client, uri)
    summary = (3, "Net: 1 graph · 0 breaks · 14 guards · 2 side effects", "magpy.showOperatorGraph")
    assert summary in await _lenses(client, uri)
    client.change(uri, 2, (1, 0, 1, 0, "\n"))
    assert (4, *summary[1:]) in await _lenses(client, uri)
    client.change(uri, 3, (4, 5, 4, 5, "x"))
    assert summary[1] not in [title for _, title, _ in await _lenses(client, uri)]


async def test_codes_can_be_listed(client: Client) -> None:
    codes = await client.request("magpy/codes", None)
    assert codes == await client.request("magpy/codes", OMIT)
    page = next(c for c in codes if c["code"] == "MP102")["page"]
    assert page.startswith("# MP102") and "## What to do" in page
