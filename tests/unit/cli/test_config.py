"""[tool.magpy]: discovery, every kind of mistake in one sentence with key and line, nothing half understood."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from lsp_server.cli.main import cli
from lsp_server.config import ConfigError, Settings, discover, load, load_for
from lsp_server.toml_lines import key_lines
from magpy_core.findings import Severity


def table(folder: Path, body: str, header: str = "[tool.magpy]\n") -> Path:
    file = folder / "pyproject.toml"
    file.write_text(header + body, encoding="utf-8")
    return file


def problems(folder: Path, body: str) -> list[tuple[int, str, str]]:
    file = table(folder, body)
    with pytest.raises(ConfigError) as caught:
        load(file)
    return [(p.line, p.key, p.message) for p in caught.value.problems]


def test_every_key(tmp_path: Path) -> None:
    file = table(
        tmp_path,
        """\
entrypoint = "train.py"
steps = 5
timeout = 60
select = ["MP1", "MP201"]
ignore = [
    "MP102",
]
fail-on = "error"
regions = ["package.module.function", "step"]
backend = "eager"
[tool.magpy.severity]
MP301 = "hint"
[tool.magpy.call-policy]
"package.function" = "pure"
""",
    )
    loaded = load(file)
    assert loaded.settings == Settings(
        entrypoint="train.py",
        steps=5,  # type: ignore[arg-type]
        timeout=60.0,  # type: ignore[arg-type]
        select=("MP1", "MP201"),  # type: ignore[arg-type]
        ignore=("MP102",),  # type: ignore[arg-type]
        fail_on=Severity.ERROR,
        regions=("package.module.function", "step"),  # type: ignore[arg-type]
        severity={"MP301": Severity.HINT},  # type: ignore[arg-type]
        backend="eager",  # type: ignore[arg-type]
        call_policy={"package.function": "pure"},  # type: ignore[arg-type]
    )
    assert loaded.file == file
    assert loaded.lines["steps"] == 3 and loaded.lines["fail-on"] == 9 and loaded.lines["severity"] == 12


@pytest.mark.parametrize(
    ("body", "line", "key", "message"),
    [
        ("step = 5", 2, "step", "is not a setting; did you mean `steps`?"),
        ("fail_on = 'error'", 2, "fail_on", "is not a setting; did you mean `fail-on`?"),
        ("\nxyzzy = 5", 3, "xyzzy", "is not a setting; known: entrypoint, steps, timeout, "),
        ("steps = '5'", 2, "steps", "must be an integer, 0 or more, not the string '5'."),
        ("steps = true", 2, "steps", "must be an integer, 0 or more, not a boolean."),
        ("steps = -1", 2, "steps", "must be an integer, 0 or more, not -1."),
        ("timeout = 0", 2, "timeout", "must be a number of seconds above 0, not 0."),
        ("timeout = inf", 2, "timeout", "must be a number of seconds above 0, not inf."),
        ("timeout = 1979-05-27", 2, "timeout", "must be a number of seconds above 0, not a date or time."),
        ("entrypoint = ''", 2, "entrypoint", "must be a non-empty string, not the string ''."),
        ("select = 'MP1'", 2, "select", "must be a list of strings, not the string 'MP1'."),
        ("ignore = ['MP1', 2]", 2, "ignore", "must be a list of strings, but contains an integer."),
        (
            "ignore = ['MP999']",
            2,
            "ignore",
            "has an invalid entry: 'MP999' is not a finding code or a prefix of one; did you mean `MP909`?",
        ),
        (
            "ignore = ['W605']",
            2,
            "ignore",
            "'W605' is not a finding code or a prefix of one; `magpy-lsp explain --all` lists them.",
        ),
        ("fail-on = 'warn'", 2, "fail-on", "must be one of error, warning, information, hint, not the string 'warn'."),
        ("regions = ['a b']", 2, "regions", "'a b' is not a dotted name like `package.module.function`."),
        ("backend = 'tvm'", 2, "backend", "must be one of inductor, aot_eager, eager, not the string 'tvm'."),
        ("severity = 'error'", 2, "severity", "must be a table, not the string 'error'."),
        (
            "[tool.magpy.severity]\nMP102 = 3",
            3,
            "severity.MP102",
            "must be one of error, warning, information, hint, not an int",
        ),
        ("[tool.magpy.severity]\nmp102 = 'hint'", 3, "severity.mp102", "is not a finding code; did you mean `MP102`?"),
        (
            "[tool.magpy.call-policy]\n'a.b' = 'safe'",
            3,
            "call-policy.a.b",
            "must be one of pure, torch, host, not the string",
        ),
        ("[tool.magpy.call-policy]\na.b = 'pure'", 3, "call-policy.a", "is a table: quote the dotted name, as in"),
        ("[tool.magpy.call-policy]\n'a-b' = 'pure'", 3, "call-policy.a-b", "is not a dotted name like `package.function`."),
    ],
)
def test_a_mistake_is_one_sentence_with_key_and_line(tmp_path: Path, body: str, line: int, key: str, message: str) -> None:
    ((found_line, found_key, found),) = problems(tmp_path, body)
    assert (found_line, found_key) == (line, f"tool.magpy.{key}")
    assert message in found
    assert "\n" not in found


def test_all_mistakes_are_reported_in_order(tmp_path: Path) -> None:
    found = problems(tmp_path, "step = 1\nselect = ['X', 'Y']\nbackend = 1\n")
    assert [(line, key.rpartition(".")[2]) for line, key, _ in found] == [
        (2, "step"),
        (3, "select"),
        (3, "select"),
        (4, "backend"),
    ]


def test_problem_as_text_and_as_finding(tmp_path: Path) -> None:
    file = table(tmp_path, "steps = -1")
    with pytest.raises(ConfigError) as caught:
        load(file)
    (problem,) = caught.value.problems
    assert str(problem) == f"{file}:2: MP910 `tool.magpy.steps` must be an integer, 0 or more, not -1."
    finding = problem.finding()
    assert finding.code == "MP910" and finding.location.file == str(file) and finding.location.range.start.line == 1


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        (b"[tool.magpy]\nsteps = \n", 2, "not valid TOML: Invalid value."),
        (b"[tool.magpy\n", 1, "not valid TOML: "),
        (b"[tool.magpy]\n\nselect = ['MP1'", 3, "not valid TOML: Unclosed array."),
        (b"[tool.magpy]\n# na\xefve\n", 2, "not UTF-8 text: save it as UTF-8."),
        (b"tool.magpy = 3\n", 1, "must be a table, not an integer."),
    ],
)
def test_broken_files(tmp_path: Path, raw: bytes, line: int, message: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load_for(tmp_path)
    (problem,) = caught.value.problems
    assert problem.line == line
    assert message in problem.sentence


def test_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").mkdir()
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        load_for(tmp_path)


def test_discovery_goes_up_to_the_nearest_with_a_table(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    top = table(tmp_path, "steps = 7")
    table(tmp_path / "a", "name = 'x'", header="[project]\n")
    assert discover(deep) == top
    assert load_for(deep).settings.steps == 7
    near = table(deep, "steps = 8")
    assert discover(deep) == near


def test_a_broken_file_that_is_not_ours_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\nname =", encoding="utf-8")
    assert discover(tmp_path) != tmp_path / "pyproject.toml"


def test_no_file_means_defaults(tmp_path: Path) -> None:
    loaded = load_for(tmp_path)
    assert loaded.settings == Settings() and loaded.lines == {}


def test_key_lines() -> None:
    text = '''\
# comment
a.b = 1
"quoted key" = """
[not a table]
x = 1
"""
[t]
list = [
  1,
  2,
]
after = {inner = 1, more.deep = 2}

[[array]]
x = 1
[t.'sub.name']
y = 2
'''
    lines = key_lines(text)
    expected = {
        ("a",): 2, ("a", "b"): 2, ("quoted key",): 3, ("t",): 7, ("t", "list"): 8, ("t", "after"): 12,
        ("t", "after", "inner"): 12, ("t", "after", "more", "deep"): 12, ("array",): 14, ("array", "0"): 14,
        ("array", "0", "x"): 15,
        ("t", "sub.name"): 16, ("t", "sub.name", "y"): 17,
    }  # fmt: skip
    assert {path: lines[path] for path in expected} == expected
    assert ("x",) not in lines


def test_verify_is_for_run(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("")
    for wrong in ('"often"', "0", "-3", "1.5"):
        [(_, key, message)] = problems(tmp_path, f"verify = {wrong}\n")
        assert key == "tool.magpy.verify" and message.startswith('must be true, false, "strict" or a number of calls')
    for value, means in (("true", "first"), ("false", "off"), ("20", "20"), ('"strict"', "strict")):
        assert load(table(tmp_path, f"verify = {value}\n")).settings.verify == means

    def shown(*arguments: str) -> str:
        return CliRunner().invoke(cli, [*arguments, "--show-settings", str(program)]).output

    assert 'verify = "strict"  # ' in shown("run") and "\nverify = " not in shown("check")
    for argument, means in (("--verify", "on"), ("--verify=7", "7"), ("--verify=off", "off"), ("--verify=strict", "strict")):
        assert f'verify = "{means}"  # command line' in shown("run", argument), "the script is no value of the option"
    assert "'soon' is neither a number of calls" in CliRunner().invoke(cli, ["run", "--verify=soon", str(program)]).output
    bisected = shown("bisect", "--into", "found")
    assert f'verify = "bisect:{Path("found").absolute()}"' in bisected and "steps = 50  #" in bisected
    text = shown("run", "--verify")
    assert 'severity = {"MP914": "error"}' in text and "MP914" not in shown("run", "--verify=off")


def test_mode_is_for_run(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("")
    [(_, key, message)] = problems(tmp_path, 'mode = "fast"\n')
    assert key == "tool.magpy.mode" and message.startswith("must be one of default, max, quick")
    assert load(table(tmp_path, 'mode = "quick"\n')).settings.mode == "quick"

    def shown(*arguments: str) -> str:
        return CliRunner().invoke(cli, [*arguments, "--show-settings", str(program)]).output

    assert 'mode = "quick"  # ' in shown("run") and "\nmode = " not in shown("check")
    assert 'mode = "max"  # command line' in shown("run", "--mode", "max")
