"""``if`` on a tensor's value: computed both ways with ``torch.where``, or a sketch of ``torch.cond``.

``torch.where`` evaluates both sides and selects one. This is equivalent only if neither side has side effects, both have
the same shape and dtype, and the gradients of the other side are zero. So the fix is offered only for sums, differences and
products of one tensor with numbers. Key functions: where_instead, cond_sketch.
"""

from __future__ import annotations

import ast

from lsp_server.features.fixes.problem import Edit, Fix, Problem, imports_torch, is_number, names_in
from magpy_core.findings import Position, Range

_REDUCTIONS = frozenset({"sum", "mean", "max", "min", "norm", "std", "var", "prod"})
_TESTS = frozenset({"isnan", "isinf", "isfinite"})
_FLOATS = ("float", "bfloat")
_SKETCHED = 6  # lines of a side


def where_instead(problem: Problem) -> Fix | None:
    """``if c: y = A`` / ``else: y = B`` as ``y = torch.where(c, A, B)``."""
    branch = _branch(problem)
    if branch is None or not imports_torch(problem.tree) or _is_elif(problem, branch):
        return None
    tested = _tested(branch.test)
    sides = _sides(problem, branch)
    if tested is None or sides is None or not problem.alone_on_its_lines(branch):
        return None
    target, first, second, last = sides
    if not all(_linear(side, tested) for side in (first, second)):
        return None
    floats = _float_evidence(problem, [first, second])
    plain = [side for side in (first, second) if isinstance(side, ast.Name)]
    if plain and (len(plain) == 2 or not floats or not _fresh_before(problem, branch, tested)):
        return None
    if not floats and _has_float(first) != _has_float(second):
        return None
    condition = problem.text_of(branch.test)
    value = f"torch.where({condition}, {problem.text_of(first)}, {problem.text_of(second)})"
    line = f"{problem.indent_of(branch)}{target}{value}\n"
    where = Range(Position(branch.lineno - 1, 0), problem.whole_lines(last).end)
    if _has_comments(problem, where):
        return None
    return Fix("Compute both ways and choose with torch.where", (Edit(where, line),))


def cond_sketch(problem: Problem) -> Fix | None:
    """A comment that shows the branch as ``torch.cond``; the user has to check that both sides have the same shape.

    If both sides set the same names or both return, the uncommented sketch can replace the branch.
    """
    branch = _branch(problem)
    if branch is None or _is_elif(problem, branch) or not problem.alone_on_its_lines(branch):
        return None
    indent = problem.indent_of(branch)
    given = _given(problem, branch)
    needed = _needed(problem, branch)
    sides = (("taken", branch.body), ("otherwise", branch.orelse))
    leaves = all(side and isinstance(side[-1], ast.Return) for _, side in sides)
    body = ["# torch.cond, as a sketch: two functions of the same tensors, whose results have the same shapes and dtypes."]
    for name, statements in sides:
        body.append(f"# def {name}({', '.join(given)}):")
        done = [line for s in statements for line in ast.unparse(s).splitlines()]
        body += [f"#     {line}" for line in done[:_SKETCHED]] + (["#     ..."] if len(done) > _SKETCHED else [])
        if not leaves:
            body.append(f"#     return {_result(needed, statements, given)}")
    call = f"torch.cond({ast.unparse(branch.test)}, taken, otherwise, ({', '.join(given)}{',' * (len(given) == 1)}))"
    body.append(f"# return {call}" if leaves else f"# {', '.join(needed) or 'result'} = {call}")
    at = Position(branch.lineno - 1, 0)
    text = "".join(f"{indent}{line}\n" for line in body)
    return Fix("Insert a sketch with torch.cond as a comment", (Edit(Range(at, at), text),), rewrite=True)


def _given(problem: Problem, branch: ast.If) -> list[str]:
    """The parameters of both functions: names that a side reads and that are set outside it in the user's function."""
    inside = {id(node) for side in (branch.body, branch.orelse) for s in side for node in ast.walk(s)}
    scope: ast.AST = problem.function if problem.function is not None else problem.tree
    names = [node for node in ast.walk(scope) if isinstance(node, ast.Name)]
    read = {n.id for n in names if id(n) in inside and isinstance(n.ctx, ast.Load)}
    outside = {n.id for n in names if id(n) not in inside and isinstance(n.ctx, ast.Store)}
    return sorted(read & (outside | {a.arg for a in ast.walk(scope) if isinstance(a, ast.arg)}) - {"self"})


def _result(names: list[str], side: list[ast.stmt], given: list[str]) -> str:
    """What one function returns; a name that its side doesn't change is cloned, since outputs must not be inputs."""
    own = {n.id for s in side for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if not names or not own.union(given).issuperset(names) or any(isinstance(s, ast.Return) for s in side):
        return f"...  # the following code needs: {', '.join(names) or 'result'}"
    return ", ".join(name if name in own else f"{name}.clone()" for name in names)


def _branch(problem: Problem) -> ast.If | None:
    """The ``if`` whose whole test is the finding's expression."""
    expression = problem.expression()
    parent = problem.parent(expression) if expression is not None else None
    return parent if isinstance(parent, ast.If) and parent.test is expression else None


def _is_elif(problem: Problem, branch: ast.If) -> bool:
    return not problem.lines[branch.lineno - 1].lstrip().startswith("if")


def _tested(test: ast.expr) -> str | None:
    """The name of the tensor that a test reduces to one boolean; None for a test of any other form."""
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1 or isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return None
        left, right = test.left, test.comparators[0]
        if is_number(left):
            left, right = right, left
        return _reduced(left) if is_number(right) else None
    if not (_is_method(test, frozenset({"any", "all"})) and isinstance(test, ast.Call)):
        return None
    assert isinstance(test.func, ast.Attribute)
    inner = test.func.value
    if isinstance(inner, ast.Compare) and len(inner.ops) == 1 and is_number(inner.comparators[0]):
        return inner.left.id if isinstance(inner.left, ast.Name) else None
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _TESTS:
        if not inner.args and not inner.keywords and isinstance(inner.func.value, ast.Name):
            return inner.func.value.id if inner.func.value.id != "torch" else None
        if len(inner.args) == 1 and isinstance(inner.args[0], ast.Name) and ast.unparse(inner.func.value) == "torch":
            return inner.args[0].id
    return None


def _is_method(node: ast.expr, names: frozenset[str]) -> bool:
    """A call of a method in ``names`` without arguments."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr in names


def _reduced(node: ast.expr) -> str | None:
    """``y`` of ``y.sum()`` and ``y.abs().max()``."""
    if not _is_method(node, _REDUCTIONS):
        return None
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    inner = node.func.value
    if _is_method(inner, frozenset({"abs"})) and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        inner = inner.func.value
    return inner.id if isinstance(inner, ast.Name) and inner.id != "torch" else None


_Sides = tuple[str, ast.expr, ast.expr, ast.stmt]


def _sides(problem: Problem, branch: ast.If) -> _Sides | None:
    """What precedes the value (``y = ``, ``return ``), the two values, and the last statement that is replaced."""
    if len(branch.body) != 1 or len(branch.orelse) > 1:
        return None
    first = branch.body[0]
    other = branch.orelse[0] if branch.orelse else None
    if isinstance(first, ast.Return) and first.value is not None:
        last: ast.stmt = branch
        if other is None:
            other = _following(problem, branch)
            if other is None or not problem.alone_on_its_lines(other):
                return None
            last = other
        if isinstance(other, ast.Return) and other.value is not None:
            return "return ", first.value, other.value, last
        return None
    name = _assigned(first)
    if name is None or not isinstance(first, ast.Assign):
        return None
    if other is None:
        return f"{name} = ", first.value, ast.Name(name, ast.Load(), **_position(first)), branch
    if _assigned(other) != name or not isinstance(other, ast.Assign):
        return None
    return f"{name} = ", first.value, other.value, branch


def _position(statement: ast.Assign) -> dict[str, int]:
    """The position of the target, whose text is the name."""
    target = statement.targets[0]
    return {
        "lineno": target.lineno,
        "col_offset": target.col_offset,
        "end_lineno": target.end_lineno or target.lineno,
        "end_col_offset": target.end_col_offset or target.col_offset,
    }


def _assigned(statement: ast.stmt | None) -> str | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def _following(problem: Problem, branch: ast.If) -> ast.stmt | None:
    parent = problem.parent(branch)
    body = getattr(parent, "body", [])
    index = body.index(branch) if branch in body else len(body)
    return body[index + 1] if index + 1 < len(body) else None


def _linear(node: ast.expr, name: str) -> bool:
    """Sums, differences and products of the tensor ``name`` with numbers."""
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _linear(node.operand, name)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        if is_number(node.right):
            return _linear(node.left, name)
        return is_number(node.left) and _linear(node.right, name)
    return False


def _has_float(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, float) for n in ast.walk(node))


def _float_evidence(problem: Problem, sides: list[ast.expr]) -> bool:
    """Whether one side was a floating-point tensor in the run: then arithmetic with numbers keeps its dtype."""
    lines = {side.lineno - 1 for side in sides if not isinstance(side, ast.Name)}
    seen = [node.tensor for line in lines for nodes in problem.nodes_at(line) for node in nodes]
    return bool(seen) and all(tensor.startswith(_FLOATS) for tensor in seen)


def _fresh_before(problem: Problem, branch: ast.If, name: str) -> bool:
    """Whether ``name`` is a tensor that the function just created and that has no other reference: then keeping it and
    creating an equal one are equivalent."""
    function = problem.function
    if function is None:
        return False
    body = function.body
    if branch not in body:
        return False
    created = None
    for statement in body[: body.index(branch)]:
        if _assigned(statement) == name and isinstance(statement, ast.Assign):
            created = statement
        elif created is not None and name in names_in(statement):
            return False  # this use may have kept an alias
        elif any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(statement)):
            return False
    return created is not None and isinstance(created.value, ast.BinOp)


def _has_comments(problem: Problem, where: Range) -> bool:
    """Whether replaced lines may contain a comment, which would be lost. A ``#`` in a string counts as well."""
    return any("#" in line for line in problem.lines[where.start.line : where.end.line])


def _needed(problem: Problem, branch: ast.If) -> list[str]:
    """The names that the branch sets and other code reads, in order; all names that it sets if there are none."""
    inside = {id(node) for node in ast.walk(branch)}
    nodes = [node for s in (*branch.body, *branch.orelse) for node in ast.walk(s)]
    stored = dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    scope: ast.AST = problem.function if problem.function is not None else problem.tree
    outside = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and id(n) not in inside]
    read = {n.id for n in outside if isinstance(n.ctx, ast.Load)}
    return [name for name in stored if name in read] or list(stored)
