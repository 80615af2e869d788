"""Runs over stdio: streaming, results, cancel, supersede, crash, hang, garbage. The worker is a scenario (conftest.Lab)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.lsp.client import VSCODE, Client, ServerError
from tests.lsp.conftest import Lab

pytestmark = pytest.mark.asyncio

SIMPLE = """
    hello()
    send(type="step", n=1)
    finding("MP102", 5, 29, 43, "`x.sum().item()` is read by Python", path=[(11, 4, 22)], values=[("x.sum()", "3.0")])
    region(5)
    print("loss 1.25", flush=True)
    print("a warning", file=sys.stderr, flush=True)
    end()
"""
HANG = """
    hello()
    grandchild = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()", str(HERE)], start_new_session=True)
    finding("MP102", 5, 29, 43, "found before the hang")
    note("hanging", str(grandchild.pid))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()
"""


async def test_check_answers_with_the_result(client: Client, lab: Lab) -> None:
    lab.scenario(SIMPLE)
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "done", result
    assert result["entrypoint"] == str(lab.program)
    assert result["findings"] == {"error": 0, "warning": 1, "information": 0, "hint": 0}
    assert [r["name"] for r in result["regions"]] == ["Net"]
    assert lab.request["mode"] == "check" and lab.request["steps"] == 3
    assert client.output("stdout") == "loss 1.25\n"
    assert client.output("stderr") == "a warning\n"
    assert "Net" in client.output("report")


async def test_a_diagnostic_has_everything(client: Client, lab: Lab) -> None:
    lab.scenario(SIMPLE)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    (found,) = await client.diagnostics_where(uri, lambda d: d, "the finding")
    # The smiley before the range is one code point and two UTF-16 units.
    assert found["range"] == {"start": {"line": 5, "character": 30}, "end": {"line": 5, "character": 44}}
    assert found["code"] == "MP102" and found["source"] == "magpy" and found["severity"] == 2
    assert found["codeDescription"]["href"].endswith("/MP102.md")
    assert found["message"] == "`x.sum().item()` is read by Python"
    (related,) = found["relatedInformation"]
    assert related["location"]["uri"] == uri and related["location"]["range"]["start"] == {"line": 11, "character": 4}
    assert found["data"]["values"] == [{"name": "x.sum()", "repr": "3.0"}]
    assert found["data"]["name"] == "host-read" and found["data"]["count"] == 1


async def test_diagnostics_stream_while_the_program_runs(client: Client, lab: Lab) -> None:
    lab.gate("end")
    lab.scenario("""
        hello()
        finding("MP102", 5, 29, 43, "early")
        gate("end")
        finding("MP301", 5, 8, 13, "late", severity="information")
        end()
    """)
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: [x["message"] for x in d] == ["early"], "the early one alone")
    assert not answer.done()
    await asyncio.to_thread(lab.open_gate, "end")
    assert (await answer)["state"] == "done"
    await client.diagnostics_where(uri, lambda d: len(d) == 2, "both")


async def test_a_finding_seen_again_replaces_itself(client: Client, lab: Lab) -> None:
    lab.scenario("""
        hello()
        for n in range(1, 6):
            finding("MP102", 5, 29, 43, "again", count=n)
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    found = await client.diagnostics_where(uri, lambda d: d and d[0]["data"]["count"] == 5, "count 5")
    assert len(found) == 1


async def test_a_compiled_run_that_recorded_nothing_keeps_what_a_check_has_found(client: Client, lab: Lab) -> None:
    lab.scenario(SIMPLE)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: d, "the finding of the check")
    lab.scenario("""
        hello()
        seen.append(5)
        said["regions"].append({
            "id": "r0", "kind": "module", "name": "Net", "file": request["script"], "line": 5, "calls": 60, "captures": 0,
            "unused": "budget",
        })
        done()
        end()
    """)
    result = await client.command("magpy.runCompiled", {"uri": uri})
    assert result["state"] == "done" and result["findings"]["warning"] == 1 and result["stale"]
    assert "nothing was recorded: recording `Net` would have cost more time" in result["summary"]
    (kept,) = client.diagnostics(uri)
    assert kept["code"] == "MP102"
    lab.scenario("""
        hello()
        region(5, captures=1)
        end()
    """)
    result = await client.command("magpy.runCompiled", {"uri": uri})
    assert result["findings"]["warning"] == 0 and not result["stale"]
    await client.diagnostics_where(uri, lambda d: not d, "no finding")


async def test_run_compiled_ends_with_a_table(client: Client, lab: Lab) -> None:
    lab.scenario("""
        hello()
        region(5, eager_ms=4.0, compiled_ms=2.0, captures=2, speedup_low=1.9, speedup_high=2.1,
               recompiles=[{"call": 2, "name": "x.shape[0]", "old": "3", "new": "4", "file": request["script"], "line": 6}])
        end()
    """)
    uri = client.open(lab.program)
    result = await client.command("magpy.runCompiled", {"uri": uri, "args": ["a b", "--lr=1"], "env": {"K": "v"}})
    assert result["state"] == "done"
    assert lab.request["mode"] == "run" and lab.request["steps"] == 0 and lab.request["args"] == ["a b", "--lr=1"]
    report = client.output("report")
    assert "2.00x" in report and "x.shape[0] 3 -> 4" in report
    assert result["regions"][0]["speedup"] == 2.0


async def test_progress_has_a_fresh_token_and_ends(client: Client, lab: Lab) -> None:
    lab.gate("end")
    lab.scenario('hello()\nsend(type="step", n=2)\ngate("end")\nend()')
    uri = client.open(lab.program)
    tokens = []
    for _ in range(2):
        before = len(client.all("$/progress"))
        _, answer = client.begin_command("magpy.check", {"uri": uri})
        begin = (await client.until(lambda n=before: client.all("$/progress")[n:], "progress begins"))[0]  # type: ignore[misc]
        assert begin["value"]["kind"] == "begin" and begin["value"]["cancellable"] is True
        tokens.append(begin["token"])
        await client.status(state="running", step=2, runId=len(tokens))
        await asyncio.to_thread(lab.open_gate, "end")
        await answer
        await client.until(
            lambda t=begin["token"]: [
                p for p in client.all("$/progress") if p["token"] == t and p["value"]["kind"] == "end"
            ],
            "progress ends",
        )
    assert tokens[0] != tokens[1]


async def test_the_last_of_many_progress_updates_is_shown(client: Client, lab: Lab) -> None:
    lab.gate("go")
    lab.gate("end")
    steps = "for n in range(1, 60): send(type='step', n=n)"
    lab.scenario(f'hello()\ngate("go")\n{steps}\ngate("end")\nend()')
    _, answer = client.begin_command("magpy.check", {"uri": client.open(lab.program)})
    await client.until(lambda: client.all("$/progress"), "progress begins")
    await asyncio.to_thread(lab.open_gate, "go")
    await client.until(
        lambda: [p for p in client.all("$/progress") if "step 59" in p["value"].get("message", "")], "the last step shown"
    )
    await asyncio.to_thread(lab.open_gate, "end")
    await answer


async def test_no_progress_for_a_client_that_has_none(server: Client, lab: Lab) -> None:
    lab.scenario(SIMPLE)
    await server.initialize({}, folder=lab.folder, options={"settings": {"interpreter": str(lab.python)}})
    uri = server.open(lab.program)
    result = await server.command("magpy.check", {"uri": uri})
    assert result["state"] == "done"
    assert [m["method"] for m in server.requested] == []
    (found,) = await server.diagnostics_where(uri, lambda d: d, "the finding")
    assert "relatedInformation" not in found


async def test_a_client_that_never_answers_progress_does_not_hold_up_the_run(client: Client, lab: Lab) -> None:
    client.answer_progress = False
    lab.scenario(SIMPLE)
    assert (await client.command("magpy.check", {"uri": client.open(lab.program)}))["state"] == "done"


async def _hanging(client: Client, lab: Lab) -> tuple[str, int, asyncio.Future[Any]]:
    lab.scenario(HANG)
    uri = client.open(lab.program)
    request, answer = client.begin_command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: d, "the finding before the hang")
    assert len(lab.processes()) == 2
    return uri, request, answer


async def test_cancel_command_leaves_no_process(client: Client, lab: Lab) -> None:
    uri, _, answer = await _hanging(client, lab)
    assert await client.command("magpy.cancel", {"uri": uri}) == {"cancelled": 1}
    assert lab.processes() == []
    assert (await answer)["state"] == "cancelled"
    assert client.diagnostics(uri), "what was found until then stays"
    assert await client.command("magpy.cancel") == {"cancelled": 0}


async def test_cancelling_the_progress_leaves_no_process(client: Client, lab: Lab) -> None:
    _, _, answer = await _hanging(client, lab)
    begin = (await client.until(lambda: client.all("$/progress"), "progress"))[0]
    client.notify("window/workDoneProgress/cancel", {"token": begin["token"]})
    assert (await answer)["state"] == "cancelled"
    assert lab.processes() == []


async def test_cancelling_the_request_leaves_no_process(client: Client, lab: Lab) -> None:
    _, request, answer = await _hanging(client, lab)
    client.notify("$/cancelRequest", {"id": request})
    with pytest.raises(ServerError) as error:
        await answer
    assert error.value.code == -32800
    await client.status(state="cancelled")
    assert lab.processes() == []


async def test_a_new_run_supersedes(client: Client, lab: Lab) -> None:
    uri, _, first = await _hanging(client, lab)
    hanging = lab.processes()
    lab.scenario(SIMPLE)
    second = await client.command("magpy.check", {"uri": uri})
    assert (await first)["state"] == "superseded"
    assert second["state"] == "done"
    assert not set(hanging) & set(lab.processes())
    states = [(s["runId"], s["state"]) for s in client.all("magpy/status")]
    assert states.index((1, "superseded")) < states.index((2, "starting"))
    await client.diagnostics_where(uri, lambda d: [x["message"] for x in d] == ["`x.sum().item()` is read by Python"], "new")


async def test_two_entrypoints_run_side_by_side(client: Client, lab: Lab) -> None:
    await _hanging(client, lab)
    other = lab.folder / "other.py"
    other.write_text("import torch\nmodel = torch.nn.Linear(1, 1)\nmodel(torch.ones(1))\n")
    lab.scenario('hello()\nfinding("MP103", 2, 0, 5, "in the other one")\nend()')
    uri = client.open(other)
    assert (await client.command("magpy.check", {"uri": uri}))["state"] == "done"
    await client.diagnostics_where(uri, lambda d: len(d) == 1, "its finding")
    assert len(lab.processes()) == 2
    await client.command("magpy.cancel")
    assert lab.processes() == []


@pytest.mark.parametrize(
    ("scenario", "words", "code"),
    [
        ("hello()\nos.kill(os.getpid(), signal.SIGKILL)", "killed", "MP906"),
        ("hello()\nend(code=None, number=11)", "SIGSEGV", "MP906"),
        ("hello()\nend(code=3)", "exited with code 3", "MP905"),
        ("sys.exit(7)", "magpy.interpreter", "MP903"),
        (
            'hello()\nsend(type="failed", code="MP905", message="ValueError: boom",'
            ' place={"file": request["script"], "line": 7, "function": "forward", "start": 8, "end": 16})\nend(1)',
            "boom",
            "MP905",
        ),
    ],
)
async def test_a_worker_that_fails_says_so(client: Client, lab: Lab, scenario: str, words: str, code: str) -> None:
    lab.scenario(scenario)
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "failed"
    assert words in result["failure"] and "\n" not in result["failure"]
    found = await client.diagnostics_where(uri, lambda d: d, "the failure's diagnostic")
    assert [d["code"] for d in found] == [code] and found[0]["severity"] == 1
    # The server is as well as before.
    lab.scenario(SIMPLE)
    assert (await client.command("magpy.check", {"uri": uri}))["state"] == "done"


async def test_garbage_is_survived(client: Client, lab: Lab) -> None:
    lab.scenario(r"""
        raw(b"\x00\xff\xfe not json\n{\n[]\n{\"type\": \"nonsense\"}\n{\"type\": [1]}\n")
        hello()
        send(type="finding", finding={"code": "MP000", "message": 3})
        send(type="finding", finding={"code": "MP102", "message": "m", "severity": "x", "file": 1, "range": {}})
        send(type="region", region={"id": "r9"})
        send(type="step", n="many")
        raw(b"x" * 100_000 + b"\n")
        finding("MP102", 5, 29, 43, "the good one")
        finding("MP102", 4000, 0, 3, "a line that is not there")
        finding("MP102", 5, 29, 43, "no such file", file="/nowhere/\udcff.py")
        os.write(1, b"\xff\xfe\x00binary\n")
        raw(b'{"type": "finding", "fin')
        end_line = b"\n"
        raw(end_line)
        end()
    """)
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "done"
    found = await client.diagnostics_where(uri, lambda d: d, "the good finding")
    assert [d["message"] for d in found] == ["the good one"]
    assert "binary" in client.output("stdout")


async def test_a_flood_of_output_is_bounded(client: Client, lab: Lab) -> None:
    lab.scenario("""
        hello()
        for n in range(2000):
            os.write(1, b"x" * 65535 + b"\\n")
        print("the last line", flush=True)
        end()
    """)
    result = await client.command("magpy.check", {"uri": client.open(lab.program)})
    assert result["state"] == "done"
    await client.until(lambda: client.output("stdout").endswith("the last line\n"), "the last line")
    sent = sum(len(o["text"]) for o in client.all("magpy/output"))
    assert sent < 100_000_000 and "omitted" in client.output("report")


async def test_wait_false_answers_at_once(client: Client, lab: Lab) -> None:
    lab.gate("end")
    lab.scenario('hello()\ngate("end")\nend()')
    result = await client.command("magpy.check", {"uri": client.open(lab.program), "wait": False})
    assert result["state"] == "starting"
    await client.status(state="running")
    await asyncio.to_thread(lab.open_gate, "end")
    await client.status(state="done")


async def test_nothing_runs_on_open_or_edit(client: Client, lab: Lab) -> None:
    lab.scenario(SIMPLE)
    uri = client.open(lab.program)
    client.change(uri, 2, (0, 0, 0, 0, "# edited\n"))
    await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    await client.sync()
    assert lab.noted("request.json") is None and client.all("magpy/status") == []


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (None, "needs a program"),
        ({}, "one argument"),
        ({"uri": "untitled:Untitled-1"}, "save it first"),
        ({"uri": "file:///x.py", "steps": -1}, "steps"),
        ({"uri": "file:///x.py", "steps": True}, "steps"),
        ({"uri": "file:///x.py", "args": "a b"}, "args"),
        ({"uri": "file:///x.py", "env": {"A": 1}}, "env"),
        ({"uri": "file:///x.py", "cwd": 3}, "cwd"),
    ],
)
async def test_wrong_arguments_are_refused(client: Client, argument: Any, words: str) -> None:
    with pytest.raises(ServerError, match=words) as error:
        await client.command("magpy.check", *([] if argument is None else [argument]))
    assert error.value.code == -32602


async def test_a_malformed_request_is_answered(client: Client) -> None:
    with pytest.raises(ServerError):
        await client.request("textDocument/hover", {"position": 3})
    await client.sync()


async def test_an_unknown_command_is_refused(client: Client) -> None:
    with pytest.raises(ServerError, match="unknown command") as error:
        await client.command("magpy.nope")
    assert error.value.code == -32602


async def test_an_interpreter_that_is_not_there(client: Client, lab: Lab) -> None:
    client.settings = {"interpreter": "/nowhere/python"}
    result = await client.command("magpy.check", {"uri": client.open(lab.program)})
    assert result["state"] == "failed"
    assert "/nowhere/python" in result["failure"] and "magpy.interpreter" in result["failure"]


async def test_a_timeout_ends_the_run(client: Client, lab: Lab) -> None:
    client.settings = {"interpreter": str(lab.python), "timeout": 1.5}
    lab.scenario(HANG)
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "failed" and "magpy.timeout" in result["failure"]
    assert lab.processes() == []
    found = await client.diagnostics_where(uri, lambda d: len(d) == 2, "the finding and the timeout")
    assert {d["code"] for d in found} == {"MP102", "MP907"}


async def test_settings_reach_the_run_and_wrong_ones_are_told(client: Client, lab: Lab) -> None:
    client.settings = {
        "interpreter": str(lab.python),
        "steps": 7,
        "args": ["--x"],
        "backend": "eager",
        "severity": {"MP102": "error", "MP3": "off", "MP999": "error"},
    }
    lab.scenario(SIMPLE.replace("end()", 'finding("MP301", 5, 8, 13, "off", severity="information")\n    end()'))
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert (lab.request["steps"], lab.request["args"], lab.request["backend"]) == (7, ["--x"], "eager")
    assert result["findings"] == {"error": 1, "warning": 0, "information": 0, "hint": 0}
    found = await client.diagnostics_where(uri, lambda d: d, "the finding")
    assert [(d["code"], d["severity"]) for d in found] == [("MP102", 1)]
    (told,) = client.all("window/showMessage")
    assert "MP999" in told["message"]


async def test_severities_apply_at_once_when_settings_change(client: Client, lab: Lab) -> None:
    lab.scenario(SIMPLE)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: d and d[0]["severity"] == 2, "a warning")
    client.settings = {"severity": {"MP1": "hint"}}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.diagnostics_where(uri, lambda d: d and d[0]["severity"] == 4, "a hint")


async def test_the_projects_table_and_comments_count(client: Client, lab: Lab) -> None:
    (lab.folder / "pyproject.toml").write_text(
        '[tool.magpy]\nsteps = 5\nignore = ["MP3"]\nregions = ["train.step"]\n[tool.magpy.severity]\nMP103 = "error"\n'
    )
    lab.program.write_text("import torch\na = 1  # magpy: ignore[MP102]\nb = 2\nc = 3  # magpy: ignore[MP104]\n")
    lab.scenario("""
        hello()
        for line in range(3):
            finding("MP102", line, 0, 1, f"read {line}")
            finding("MP301", line, 0, 1, "unwanted", severity="information")
        finding("MP103", 2, 0, 1, "clock")
        region(1)
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    found = await client.diagnostics_where(uri, lambda d: len(d) == 4, "what the project wants")
    assert lab.request["steps"] == 5 and lab.request["regions"] == ["train.step"]
    assert sorted((d["code"], d["range"]["start"]["line"], d["severity"]) for d in found) == [
        ("MP102", 0, 2), ("MP102", 2, 2), ("MP103", 2, 1), ("MP912", 3, 4),
    ]  # fmt: skip


async def test_a_broken_table_is_a_diagnostic_in_it(client: Client, lab: Lab) -> None:
    table = lab.folder / "pyproject.toml"
    table.write_text('[tool.magpy]\nsteps = "many"\n')
    result = await client.command("magpy.check", {"uri": client.open(lab.program)})
    assert result["state"] == "failed" and "pyproject.toml:2" in result["failure"]
    (found,) = await client.diagnostics_where(table.as_uri(), lambda d: d, "MP910")
    assert found["code"] == "MP910" and found["range"]["start"]["line"] == 1
    assert lab.noted("request.json") is None


async def test_a_table_that_changed_unseen_is_read_again_by_a_run(client: Client, lab: Lab) -> None:
    table = lab.folder / "pyproject.toml"
    table.write_text("[tool.magpy]\nsteps = 2\n")
    await client.command("magpy.check", {"uri": client.open(lab.program)})  # by now, the server has read it
    table.write_text('[tool.magpy]\nsteps = "many"\n')
    await client.command("magpy.check", {"uri": client.open(lab.program)})
    (found,) = await client.diagnostics_where(table.as_uri(), lambda d: d, "MP910")
    assert found["code"] == "MP910" and found["range"]["start"]["line"] == 1


async def test_other_clients_get_a_message_box_for_failures(server: Client, lab: Lab) -> None:
    lab.scenario("sys.exit(7)")
    capabilities = {k: v for k, v in VSCODE.items() if k != "experimental"}
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize(capabilities, folder=lab.folder)
    await server.command("magpy.check", {"uri": server.open(lab.program)})
    (told,) = await server.until(lambda: server.all("window/showMessage"), "a message")
    assert told["type"] == 1 and told["message"].startswith("MagPy: train.py: ")


async def test_the_program_starts_in_its_workspace_folder(client: Client, lab: Lab) -> None:
    inner = lab.folder / "a folder" / "été.py"
    inner.parent.mkdir()
    inner.write_text("import torch\n")
    lab.scenario('note("cwd", os.getcwd())\nhello()\nend()')
    uri = client.open(inner)
    await client.command("magpy.check", {"uri": uri})
    assert lab.noted("cwd") == str(lab.folder)
    assert lab.request["script"] == str(inner)
    await client.command("magpy.check", {"uri": uri, "module": "pkg.train", "cwd": str(inner.parent)})
    assert lab.noted("cwd") == str(inner.parent)
    assert lab.request["module"] == "pkg.train" and lab.request["script"] is None


async def test_clear_forgets(client: Client, lab: Lab) -> None:
    lab.scenario(SIMPLE)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: d, "the finding")
    await client.command("magpy.clear")
    await client.diagnostics_where(uri, lambda d: not d, "none")
