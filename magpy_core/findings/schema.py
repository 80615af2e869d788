"""The JSON Schema (2020-12) of ``Report.to_json``; published as ``docs/report.schema.json``. Key function: report_schema."""

from __future__ import annotations

from typing import Any

from magpy_core.findings.code import Severity
from magpy_core.findings.registry import REGISTRY
from magpy_core.findings.report import SCHEMA_VERSION

Schema = dict[str, Any]


def _object(description: str, properties: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object with exactly these properties; those in ``optional`` may be absent."""
    return {
        "description": description,
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }


def _string(description: str, **more: Any) -> Schema:
    return {"description": description, "type": "string", **more}


def _count(description: str, minimum: int = 0) -> Schema:
    return {"description": description, "type": "integer", "minimum": minimum}


def _measured(description: str) -> Schema:
    return {"description": description + "; null when not measured", "type": ["number", "null"], "minimum": 0}


def _list(description: str, items: str) -> Schema:
    return {"description": description, "type": "array", "items": {"$ref": f"#/$defs/{items}"}}


# POSIX or Windows; relative paths would depend on the reader's working directory.
_ABSOLUTE = r"^(/|[A-Za-z]:[\\/]|\\\\)"
_REGION_FILE = r"^(|/.*|[A-Za-z]:[\\/].*|\\\\.*|<.*>)$"


def report_schema() -> Schema:
    """The JSON Schema of the report, version ``SCHEMA_VERSION``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:magpy:report:{SCHEMA_VERSION}",
        "title": "MagPy report",
        **_object(
            "The findings and measurements of one run. Contains paths and excerpts of values of the program.",
            {
                "version": {"description": "Version of this schema", "const": SCHEMA_VERSION},
                "entrypoint": _string("What was run: a file's path, or `-m package.module`"),
                "regions": _list("One entry per region", "region"),
                "findings": _list("Every finding, each once, with its count", "finding"),
                "timings": {
                    "description": "Seconds by phase",
                    "type": "object",
                    "additionalProperties": {"type": "number", "minimum": 0},
                },
                "steps": _count("Steps done: optimizer steps, or module calls if there is no optimizer"),
            },
            {"comparison": _list("Only of `check --engine both`: each region's figures per engine", "compared")},
        ),
        "$defs": {
            "position": _object(
                "A place in a file, 0-based",
                {
                    "line": _count("0-based line"),
                    "character": _count("0-based column in Unicode code points"),
                },
            ),
            "range": _object(
                "Half-open source range",
                {"start": {"$ref": "#/$defs/position"}, "end": {"$ref": "#/$defs/position"}},
            ),
            "location": _object(
                "A range in a file",
                {
                    "file": _string("Absolute path", pattern=_ABSOLUTE),
                    "range": {"$ref": "#/$defs/range"},
                    "function": _string("The function it is in; empty at module level"),
                },
            ),
            "value": _object(
                "A value involved in a finding",
                {
                    "name": _string("Access path or role"),
                    "repr": _string("Bounded repr; never the data of a tensor"),
                },
            ),
            "finding": _object(
                "One diagnostic",
                {
                    "code": {"description": "Code in the registry", "enum": list(REGISTRY)},
                    "name": {"description": "Name of the code", "enum": [c.name for c in REGISTRY.values()]},
                    "severity": {"enum": [s.value for s in Severity]},
                    "message": _string("What the finding is; the first line can be read by itself", minLength=1),
                    "hint": _string("What to do"),
                    "file": _string("Absolute path", pattern=_ABSOLUTE),
                    "range": {"$ref": "#/$defs/range"},
                    "function": _string("The function it is in; empty at module level"),
                    "region": {"description": "The id of its region, or null", "type": ["string", "null"]},
                    "count": _count("How often it was found, over all calls of the region", minimum=1),
                    "cost_ms": _measured(
                        "Milliseconds, if measured: per occurrence of a recompile, else per step of the program"
                    ),
                    "values": _list("The values involved", "value"),
                    "path": _list("Call path from the region to the finding, outermost first", "location"),
                },
                {
                    "fingerprint": _string("Stays the same when lines move; unique in the report", minLength=1),
                    "ranks": {
                        "description": "The ranks of a distributed run that report it, if not all do",
                        "type": "array",
                        "items": _count("Rank"),
                    },
                    "steps": _count("In how many steps of the program it held; absent if not counted"),
                },
            ),
            "compared": _object(
                "One region under MagPy and under torch.compile",
                {
                    "kind": {"enum": ["module", "optimizer", "function"]},
                    "name": _string("Name for people"),
                    "file": _string("Where it is defined: absolute path, <name> or empty", pattern=_REGION_FILE),
                    "line": _count("1-based line; 0 if unknown"),
                    "entrypoint": _string("Its program, in a report of several; else empty"),
                    "eager_ms": _measured("Median milliseconds of a call in plain Python"),
                    "engines": {
                        "description": "The figures of `magpy` and `dynamo`; an engine without this region is absent",
                        "type": "object",
                        "additionalProperties": {"$ref": "#/$defs/figures"},
                    },
                },
            ),
            "figures": _object(
                "The figures of one engine for a region",
                {
                    "region": _string("The id of the region in `regions`", minLength=1),
                    "calls": _count("Calls in this run"),
                    "graphs": _count("Operator graphs that one call runs"),
                    "graph_breaks": _count("Places where the graph is cut"),
                    "recompiles": _count("Captures, or compiled versions, after the first"),
                    "guards": _count("Guards checked before a call"),
                    "guard_ms": _measured("Median milliseconds of checking the guards"),
                    "compile_s": _measured("Seconds spent compiling"),
                    "compiled_ms": _measured("Median milliseconds of a compiled call"),
                },
            ),
            "recompile": _object(
                "A capture of a region after the first, and its cause",
                {
                    "call": _count("The call of the region that needed it, from 1", minimum=1),
                    "name": _string("Access path of the value that changed"),
                    "old": _string("Bounded repr of the guarded value"),
                    "new": _string("Bounded repr of the new value"),
                    "file": _string("The file that reads the value; empty if unknown"),
                    "line": _count("1-based line; 0 if unknown"),
                },
            ),
            "capture": _object(
                "One capture of a region",
                {
                    "guards": _count("Values checked before a replay"),
                    "guard_ms": _measured("Median milliseconds of a successful check"),
                    "hits": _count("Calls that were replayed"),
                    "complete": {"description": "The capture is one complete operator graph", "type": "boolean"},
                    "compile_s": _measured("Seconds spent compiling"),
                },
            ),
            "region": _object(
                "What is captured as a unit",
                {
                    "id": _string("Unique in the report", minLength=1),
                    "kind": {"enum": ["module", "optimizer", "function"]},
                    "name": _string("Name for people"),
                    "file": _string("Where it is defined: absolute path, <name> or empty", pattern=_REGION_FILE),
                    "line": _count("1-based line; 0 if unknown"),
                    "calls": _count("Calls in this run"),
                    "captures": _count("Captures made"),
                    "complete": {"description": "Every capture is one complete operator graph", "type": "boolean"},
                    "graph_breaks": _count("Places where the graph is cut"),
                    "guards": _count("Values checked before a replay"),
                    "side_effects": _count("Changes to external state that a replay makes"),
                    "host_reads": _count("Tensor values that Python waits for in one call"),
                    "hits": _count("Calls that were replayed"),
                    "eager_ms": _measured("Median milliseconds of a call in plain Python"),
                    "compiled_ms": _measured("Median milliseconds of a compiled call"),
                    "guard_ms": _measured("Median milliseconds of checking the guards of a call, part of a compiled call"),
                    "compile_s": _measured("Seconds spent compiling"),
                    "captures_after_step_3": _count("Captures made after the third step"),
                    "entrypoint": _string("Its program, in a report of several; else empty"),
                    "recompiles": _list("Every capture after the first, and its cause", "recompile"),
                    "per_capture": _list("The current captures, newest first", "capture"),
                    "speedup": _measured("eager_ms / compiled_ms"),
                    "speedup_low": _measured("Lower end of the 95 % confidence interval of the speed-up"),
                    "speedup_high": _measured("Upper end of the 95 % confidence interval of the speed-up"),
                },
                {
                    "engine": {"description": "The engine that the figures are of", "enum": ["magpy", "dynamo"]},
                    "graphs": _count("Operator graphs that one call runs"),
                },
            ),
        },
    }
