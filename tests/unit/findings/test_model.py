"""Findings: the model's JSON form, the published schema and what every registry entry must have."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from magpy_core.findings import (
    REGISTRY,
    CaptureSummary,
    Code,
    Finding,
    Kernel,
    KernelCode,
    Location,
    Position,
    Range,
    Recompile,
    RegionSummary,
    Report,
    Severity,
    StepPart,
    StepReport,
    StepSample,
    TargetReport,
    Unsupported,
    Value,
    WhyNot,
    lookup,
)
from magpy_core.findings.registry import PAGES, matching, read
from magpy_core.findings.report import SCHEMA_VERSION, report_schema
from magpy_core.findings.step import STEP_KINDS


def location(file: str = "/p/train.py", line: int = 3) -> Location:
    return Location(file, Range(Position(line, 4), Position(line, 15)), "step")


def full_report() -> Report:
    finding = Finding(
        "MP102",
        "`loss.item()` reads a tensor's value",
        location(),
        hint="Keep it a tensor.",
        region="module:Net",
        path=(location(line=1), location()),
        values=(Value("loss", "Tensor[]"),),
        count=3,
        cost_ms=0.25,
    )
    region = RegionSummary(
        "module:Net",
        "module",
        "Net",
        "/p/net.py",
        7,
        calls=3,
        captures=2,
        complete=True,
        eager_ms=2.0,
        compiled_ms=0.5,
        recompiles=[Recompile(2, "self.lr", "0.1", "0.2", "/p/net.py", 9)],
    )
    step = StepReport(
        count=300,
        plain=20,
        compiled=270,
        plain_ms=63.0,
        compiled_ms=42.0,
        speedup_low=1.48,
        speedup_high=1.6,
        saved_s=-1.5,
        wait_s=3.0,
        compile_s=12.0,
        seconds=14.0,
        break_even=290,
        parts=[StepPart("Net", "module:Net", 10.0, 20.0, 5.0, 9.0), StepPart("rest", plain_forward_ms=33.0)],
        timeline=[StepSample(1, 70.5, "waited"), StepSample(2, 42.0, "compiled")],
    )
    return Report("/p/train.py", [region], [finding], {"total": 1.5}, steps=300, step=step)


def test_report_survives_json() -> None:
    report = full_report()
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_severity_override_survives_json() -> None:
    finding = Finding("MP102", "m", location(), hint="h", severity_override=Severity.ERROR)
    assert finding.severity is Severity.ERROR
    assert Finding.from_json(finding.to_json()) == finding


def test_hint_falls_back_to_the_registry() -> None:
    assert Finding("MP102", "m", location()).to_json()["hint"] == lookup("MP102").hints[0]
    assert Finding("MP102", "m", location(), hint="own").to_json()["hint"] == "own"


def test_a_finding_seen_again_has_the_same_key_and_a_higher_count() -> None:
    first = Finding("MP102", "m", location())
    assert first.repeated().key == first.key
    assert first.repeated().count == 2 and first.count == 1
    assert Finding("MP102", "m", location(line=9)).key != first.key


def test_unsupported_says_code_and_message() -> None:
    assert str(Unsupported("MP106", "resize_ is not supported")) == "MP106: resize_ is not supported"


def test_schema_is_valid_and_accepts_a_report() -> None:
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(full_report().to_json(), schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("findings", 0, "file"), "train.py"),
        (("findings", 0, "code"), "MP999"),
        (("findings", 0, "severity"), "bad"),
        (("findings", 0, "count"), 0),
        (("findings", 0, "range", "start", "line"), -1),
        (("findings", 0, "extra"), 1),
        (("regions", 0, "kind"), "loop"),
        (("regions", 0, "calls"), "3"),
        (("version",), "0.9"),
        (("timings", "total"), "fast"),
        (("step", "count"), -1),
        (("step", "plain_ms"), "fast"),
        (("step", "break_even"), 0),
        (("step", "extra"), 1),
        (("step", "parts", 0, "plain_forward_ms"), -1.0),
        (("step", "parts", 0, "extra"), 1),
        (("step", "timeline", 0, "step"), 0),
        (("step", "timeline", 0, "kind"), "eager"),
    ],
)
def test_schema_refuses(where: tuple[str | int, ...], value: object) -> None:
    data: Any = full_report().to_json()
    target = data
    for step in where[:-1]:
        target = target[step]
    target[where[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, report_schema(), cls=jsonschema.Draft202012Validator)


def test_schema_names_every_field() -> None:
    schema = report_schema()
    parts = {**schema["$defs"], "step": schema["properties"]["step"]}
    for name, cls, more in (
        ("region", RegionSummary, {"speedup", "verdict"}),
        ("capture", CaptureSummary, set()),
        ("recompile", Recompile, set()),
        ("location", Location, set()),
        ("value", Value, set()),
        ("step", StepReport, {"speedup", "verdict"}),
        ("step_part", StepPart, set()),
        ("step_sample", StepSample, set()),
        ("target", TargetReport, set()),
        ("why_not", WhyNot, set()),
        ("kernel", Kernel, set()),
        ("kernel_code", KernelCode, set()),
    ):
        assert set(parts[name]["properties"]) == {f.name for f in fields(cls)} | more, name
    target = TargetReport("cuda:sm_90", "H100 SXM", 1.0, 2.5)
    written = Finding("MP102", "m", location(), ranks=(1,), steps=2, at_most_ms=1.0, step_ms=2.0).to_json()
    assert set(parts["finding"]["properties"]) == {*written, "fingerprint", "fixes"}
    assert {*schema["properties"]} == {
        *Report(
            "t.py",
            step=StepReport(),
            kernels=target,
            stopped_after=3,
            numerics="strict",
            why_not=[WhyNot("r", "r", "eager")],
        ).to_json(),
        "comparison",
    }
    for name in ("step", "step_part", "step_sample"):
        assert set(parts[name]["required"]) == set(parts[name]["properties"]), name
    assert tuple(parts["step_sample"]["properties"]["kind"]["enum"]) == STEP_KINDS


def test_schema_lists_what_the_registry_has() -> None:
    schema = report_schema()
    finding = schema["$defs"]["finding"]["properties"]
    assert finding["code"]["enum"] == list(REGISTRY)
    assert finding["name"]["enum"] == [code.name for code in REGISTRY.values()]
    assert finding["severity"]["enum"] == list(Severity)
    assert schema["properties"]["version"]["const"] == SCHEMA_VERSION and schema["$id"].endswith(f":{SCHEMA_VERSION}")
    kinds = [schema["$defs"][name]["properties"]["kind"]["enum"] for name in ("region", "compared")]
    assert kinds == [["module", "optimizer", "function", "step", "stretch"]] * 2


@pytest.mark.parametrize("code", REGISTRY.values(), ids=lambda c: c.code)
class TestEveryCode:
    def test_name_and_code_have_the_right_form(self, code: Code) -> None:
        assert re.fullmatch(r"MP([123459]|D[123])\d\d", code.code)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code.name)

    def test_text_is_whole_sentences(self, code: Code) -> None:
        assert len(code.explanation) > 120
        assert code.reason.endswith(".") and "\n" not in code.reason
        assert code.hints and all(hint[-1] in ".`" for hint in code.hints)
        assert not code.title.endswith(".")

    def test_page_names_its_file_family_and_how_to_silence_it(self, code: Code) -> None:
        assert code.page.startswith(f"# {code.code}: {code.title}\n\n`{code.name}` · {code.family} · default severity: ")
        silence = (
            f"\n## Silence it\n\nPut `# magpy: ignore[{code.code}]` on the line, `# magpy: ignore-file[{code.code}]` "
            f'anywhere in the file, or `ignore = ["{code.code}"]` under `[tool.magpy]` in `pyproject.toml`.\n'
        )
        assert (silence in code.page) == (code.language == "python")
        assert REGISTRY[code.code] is code

    def test_example_parses_and_marks_the_line(self, code: Code) -> None:
        for text in filter(None, (code.example, code.fixed)):
            if code.language == "toml":
                tomllib.loads(text)
            else:
                ast.parse(text)
        assert re.search(rf"# .*\b{code.code}\b", code.example)
        assert code.code not in code.fixed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# MP102: ", "# ", "line 1: expected the title `# CODE: ...`"),
        ("severity: warning", "severity: bad", "line 3: expected the line of name, family and severity"),
        ("\n**", "\n", "line 5: expected the reason in bold"),
        ("## What to do", "## What next", "line 19: expected `## What to do` and a list"),
        ("```python", "```", "line 27: expected `## Example` and a code block"),
        ("## Silence it", "## Silence", "line 43: expected `## Silence it`, or the end"),
    ],
)
def test_a_page_of_another_form(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = (PAGES / "MP102.md").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "MP102.md").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"MP102\.md, {re.escape(message)}$"):
        read(tmp_path / "MP102.md")


def test_names_are_unique() -> None:
    names = [c.name for c in REGISTRY.values()]
    assert len(set(names)) == len(names)


def test_unknown_code_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"unknown finding code 'MP999'; known: MP101, "):
        lookup("MP999")


def test_matching_prefixes() -> None:
    assert [c.code for c in matching("MP102")] == ["MP102"]
    assert {c.family for c in matching("MP2")} == {"guard"}
    assert matching("MP999") == [] and matching("") == []


def test_findings_import_only_the_standard_library() -> None:
    program = (
        "import sys, magpy_core.findings\n"
        "own = {'magpy_core', *sys.stdlib_module_names}\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} - own - before))"
    )
    before = "import sys; before = {m.split('.')[0] for m in sys.modules}\n"
    done = subprocess.run([sys.executable, "-c", before + program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
