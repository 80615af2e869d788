"""Reference graphs as text and as a picture (DOT): every node, the edges that were read, what was written, and where.

Key functions: ``to_text``, ``to_dot``, ``to_details``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magpy_core.findings.details import FactDetail, ObjectDetail
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import bounded_repr
from magpy_core.refgraph.source import Source

if TYPE_CHECKING:
    from magpy_core.refgraph.graph import Node, Read, RefGraph


def to_text(graph: RefGraph) -> str:
    """One paragraph per node, in the order of first touch: what was read of it, and what was written."""
    reads = _reads_by_node(graph)
    lines = [f"{len(graph.nodes)} nodes, {len(graph.reads)} guarded reads"]
    for node in graph.nodes.values():
        own = reads.get(id(node.source), [])
        if node.kind == kinds.IDENTITY and not own and not node.was_written:
            continue  # a function or class that only lies on the way
        lines.append(f"{node.source.describe()}: {_type_text(node)}")
        lines += [_aligned(f"  {read.kind.text(read)}", place(read.site)) for read in own]
        if node.was_written:
            lines.append(_aligned(f"  {_written_text(node)}", _places(node.written_at)))
    return "\n".join(lines) + "\n"


def to_dot(graph: RefGraph) -> str:
    """A DOT digraph: boxes are objects (bold where written), arrows the access paths between them."""
    reads = _reads_by_node(graph)
    shown = _shown(graph, reads)
    names = {id(node.source): f"n{i}" for i, node in enumerate(shown)}
    lines = ["digraph refgraph {", '  node [shape=box, fontname="monospace"];']
    for node in shown:
        parts = [f"{node.source.describe()}: {_type_text(node)}"]
        for read in reads.get(id(node.source), []):
            parts.append(f"{read.kind.text(read)}  {place(read.site)}".rstrip())
        if node.was_written:
            parts.append(f"{_written_text(node)}  {_places(node.written_at)}".rstrip())
        label = "".join(_quoted(part) + "\\l" for part in parts)
        style = ', style="bold"' if node.was_written else ""
        lines.append(f'  {names[id(node.source)]} [label="{label}"{style}];')
    for node in shown:
        owner = _owner(node.source.base, names)
        if owner is not None:
            lines.append(
                f'  {names[id(owner)]} -> {names[id(node.source)]} [label="{_quoted(_step_text(node.source, owner))}"];'
            )
    return "\n".join([*lines, "}"]) + "\n"


def to_details(graph: RefGraph) -> list[ObjectDetail]:
    """The picture as data, for reports: an object knows which one it was reached from."""
    reads = _reads_by_node(graph)
    shown = _shown(graph, reads)
    index = {id(node.source): i for i, node in enumerate(shown)}
    objects = []
    for node in shown:
        owner = _owner(node.source.base, index)
        detail = ObjectDetail(node.source.describe(), _type_text(node))
        if owner is not None:
            detail.parent, detail.step = index[id(owner)], _step_text(node.source, owner)
        detail.reads = [FactDetail(read.kind.text(read), *full_place(read.site)) for read in reads.get(id(node.source), [])]
        if node.was_written:
            sites = list(dict.fromkeys(full_place(site) for site in node.written_at if site is not None))
            detail.writes = [FactDetail(_written_text(node), *at) for at in sites or [("", 0)]]
        objects.append(detail)
    return objects


def place(site: Any) -> str:
    """``file:line`` of a site, with the file's name only; empty for what the region's entry itself read."""
    if site is None:
        return ""
    return f"{site.code.co_filename.rsplit('/', 1)[-1]}:{site.lineno}"


def full_place(site: Any) -> tuple[str, int]:
    """File and line of a site; the innermost line, a library's included."""
    return ("", 0) if site is None else (site.code.co_filename, site.lineno or 0)


def _shown(graph: RefGraph, reads: dict[int, list[Read]]) -> list[Node]:
    """Without functions and classes that only lie on the way."""
    return [n for n in graph.nodes.values() if n.kind != kinds.IDENTITY or n.was_written or id(n.source) in reads]


def _places(sites: list[Any]) -> str:
    return ", ".join(dict.fromkeys(place(s) for s in sites if s is not None))


def _written_text(node: Node) -> str:
    """``written a, b``: the slots that were written by name; the difference at exit may hold more, or nothing."""
    if node.forced and all(op == "maybe_item" for op, _ in node.forced):
        return "perhaps written"  # a table that nn.Module.__setattr__ looks at
    names = ", ".join(
        sorted({bounded_repr(key) if not isinstance(key, str) else key for _, key in node.forced if key is not None})
    )
    return f"written: {names}" if names else "written"


def _type_text(node: Node) -> str:
    kind = kinds.NAMES[node.kind]
    return kind if kind == node.type_name.lower() else f"{kind} {node.type_name}"


def _owner(source: Source | None, known: Any) -> Source | None:
    """The nearest step of an access path that is a node's."""
    while source is not None and id(source) not in known:
        source = source.base
    return source


def _reads_by_node(graph: RefGraph) -> dict[int, list[Read]]:
    """Reads by the node that holds the edge; those of no node (arguments that are numbers) under the read's own source."""
    known = {id(n.source) for n in graph.nodes.values()}
    out: dict[int, list[Read]] = {}
    for read in graph.reads:
        at = read.source if read.kind.of_object else read.source.base
        owner = _owner(at, known) or _owner(read.source, known)
        out.setdefault(id(owner if owner is not None else read.source), []).append(read)
    return out


def _step_text(source: Source, owner: Source) -> str:
    """The path from ``owner`` to ``source``."""
    text, head = source.describe(), owner.describe()
    return text.removeprefix(head) if text.startswith(head) and text != head else f"{source.kind} {source.key}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _aligned(text: str, where: str) -> str:
    return f"{text:<60}  # {where}" if where else text
