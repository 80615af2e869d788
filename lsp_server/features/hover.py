"""What a hover over findings says: why, the values involved, what to do, where to read more. Key function: hover_text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from magpy_core.findings import Finding, Severity, lookup

_IN_FULL = 3
_LISTED = 12


def _code(text: str) -> str:
    """``text`` as a Markdown code span, whatever backticks are in it."""
    text = " ".join(text.split()) or " "
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(text: str) -> str:
    """``text`` with Markdown's active characters escaped: messages quote the user's code."""
    return re.sub(r"([\\*_\[\]<>#|])", r"\\\1", text)


def _facts(finding: Finding) -> list[str]:
    facts = []
    if finding.region:
        facts.append(f"region {finding.region}")
    if finding.count > 1:
        facts.append(f"seen {finding.count} times")
    if finding.cost_ms is not None:
        facts.append(f"costs {finding.cost_ms:.2f} ms")
    return facts


def _full_markdown(finding: Finding, severity: Severity) -> str:
    code = lookup(finding.code)
    parts = [f"**{code.code}** {code.name} · {severity.value}", _plain(finding.message)]
    if code.reason:
        parts.append(f"*Why:* {_plain(code.reason)}")
    if finding.values:
        parts.append("\n".join(f"- {_code(v.name)} = {_code(v.repr)}" for v in finding.values[:_LISTED]))
    hint = finding.hint or " ".join(code.hints[:1])
    if hint:
        parts.append(f"*What to do:* {_plain(hint)}")
    facts = _facts(finding)
    if facts:
        parts.append(_plain(" · ".join(facts)))
    parts.append(f"[{code.code} documentation]({code.url})")
    return "\n\n".join(parts)


def _full_plain(finding: Finding, severity: Severity) -> str:
    code = lookup(finding.code)
    lines = [f"{code.code} {code.name} ({severity.value})", finding.message]
    if code.reason:
        lines.append(f"Why: {code.reason}")
    lines += [f"  {v.name} = {v.repr}" for v in finding.values[:_LISTED]]
    hint = finding.hint or " ".join(code.hints[:1])
    if hint:
        lines.append(f"What to do: {hint}")
    lines += [" · ".join(_facts(finding))] if _facts(finding) else []
    lines.append(code.url)
    return "\n".join(lines)


def hover_text(found: Sequence[tuple[Finding, Severity]], *, markdown: bool) -> str:
    """The worst findings in full, the others one line each. ``found`` must not be empty."""
    ordered = sorted(found, key=lambda pair: (pair[1].rank, pair[0].code, pair[0].message))
    full, rest = ordered[:_IN_FULL], ordered[_IN_FULL:]
    if markdown:
        text = "\n\n---\n\n".join(_full_markdown(f, s) for f, s in full)
        listed = [f"- **{f.code}** {_plain(f.message)}" for f, _ in rest[:_LISTED]]
    else:
        text = "\n\n".join(_full_plain(f, s) for f, s in full)
        listed = [f"- {f.code} {f.message}" for f, _ in rest[:_LISTED]]
    if len(rest) > _LISTED:
        listed.append(f"- and {len(rest) - _LISTED} more")
    return text + ("\n\n---\n\n" if markdown and listed else "\n" if listed else "") + "\n".join(listed)
