"""Reference graphs as text and as data: every node, the edges that were read, what was written, and where.

Key functions: ``to_text``, ``to_details``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from magpy_core.findings.details import FactDetail, ObjectDetail
from magpy_core.refgraph import kinds
from magpy_core.refgraph.guard_kind import Read
from magpy_core.refgraph.kinds import bounded_repr
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source


def to_text(nodes: Collection[Node], reads: list[Read]) -> str:
    """One paragraph per node, in the order of first use: its reads and its writes."""
    lines = [f"{len(nodes)} nodes, {len(reads)} guarded reads"]
    for shown in to_details(nodes, reads):
        lines.append(f"{shown.name}: {shown.kind}")
        lines += [_aligned(fact.text, [fact]) for fact in shown.reads]
        lines += [_aligned(shown.writes[0].text, shown.writes)] if shown.writes else []
    return "\n".join(lines) + "\n"


def to_details(nodes: Collection[Node], reads: list[Read]) -> list[ObjectDetail]:
    """The nodes as data for reports; each refers to the one it was reached from."""
    read_of = _reads_by_node(nodes, reads)
    # without functions and classes that are only steps of a path
    shown = [n for n in nodes if n.kind != kinds.IDENTITY or n.was_written or id(n.source) in read_of]
    index = {id(node.source): i for i, node in enumerate(shown)}
    objects = []
    for node in shown:
        owner = _owner(node.source.base, index)
        detail = ObjectDetail(node.source.describe(), _type_text(node))
        if owner is not None:
            detail.parent, detail.step = index[id(owner)], _step_text(node.source, owner)
        detail.reads = [
            FactDetail(read.kind.text(read), *full_place(read.site)) for read in read_of.get(id(node.source), [])
        ]
        if node.was_written:
            sites = list(dict.fromkeys(full_place(site) for site in node.written_at if site is not None))
            detail.writes = [FactDetail(_written_text(node), *at) for at in sites or [("", 0)]]
        objects.append(detail)
    return objects


def full_place(site: Any) -> tuple[str, int]:
    """File and line of a site, even in a library."""
    return ("", 0) if site is None else (site.code.co_filename, site.lineno or 0)


def _written_text(node: Node) -> str:
    """``written: a, b``: the slots written by name; the difference at exit may contain more, or nothing."""
    if node.forced and all(op == "maybe_item" for op, _ in node.forced):
        return "perhaps written"  # a table that nn.Module.__setattr__ checks
    names = ", ".join(
        sorted({bounded_repr(key) if not isinstance(key, str) else key for _, key in node.forced if key is not None})
    )
    return f"written: {names}" if names else "written"


def _type_text(node: Node) -> str:
    kind = kinds.NAMES[node.kind]
    return kind if kind == node.type_name.lower() else f"{kind} {node.type_name}"


def _owner(source: Source | None, known: Any) -> Source | None:
    """The last step of an access path that has a node."""
    while source is not None and id(source) not in known:
        source = source.base
    return source


def _reads_by_node(nodes: Collection[Node], reads: list[Read]) -> dict[int, list[Read]]:
    """Reads by the source of the node that the edge starts at; if there is none (number arguments), by their own source."""
    known = {id(n.source) for n in nodes}
    out: dict[int, list[Read]] = {}
    for read in reads:
        at = read.source if read.kind.of_object else read.source.base
        owner = _owner(at, known) or _owner(read.source, known)
        out.setdefault(id(owner if owner is not None else read.source), []).append(read)
    return out


def _step_text(source: Source, owner: Source) -> str:
    """The path from ``owner`` to ``source``."""
    text, head = source.describe(), owner.describe()
    return text.removeprefix(head) if text.startswith(head) and text != head else f"{source.kind} {source.key}"


def _aligned(text: str, facts: list[FactDetail]) -> str:
    places = ", ".join(dict.fromkeys(f"{f.file.rsplit('/', 1)[-1]}:{f.line}" for f in facts if f.line))
    return f"  {text:<58}  # {places}" if places else f"  {text}"
