"""Classes, functions and objects of random programs: each with the same members, made in ways chosen at random.

Every object of a random program has ``n k xs d t flag name nxt twice bump total me step bound forward make default shared made
scale``, is called, indexed and has a length; whether ``n`` is an attribute, a slot, a property or a descriptor is drawn.
Key function: world.
"""

from __future__ import annotations

import random

Line = str

PRELUDE = """
import bisect, collections, contextlib, contextvars, copy, dataclasses, enum, functools, heapq, io, itertools, json, logging, math, operator
import pickle, random, re, string, sys, textwrap, threading, types, typing, warnings, weakref
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
"""


def _member(rng: random.Random, *choices: str) -> str:
    return rng.choice(choices)


def node_class(rng: random.Random, name: str, base: str, finalizer: bool) -> str:
    """A class with the members that expressions use."""
    parts = [f"class {name}({base}):"]
    slots = base == "" and rng.random() < 0.15
    names = "n k xs d t flag name nxt made scale".split()
    attribute = rng.choice(["plain", "plain", "property", "descriptor", "getattr", "class"]) if not slots else "plain"
    if slots:
        parts.append(
            "    __slots__ = ('n', 'k', 'xs', 'd', 't', 'flag', 'name', 'nxt', 'made', 'scale', 'bound', '__weakref__')"
        )
    else:
        parts.append("    scale = 2")
    parts.append(f"    default = {rng.choice(['3', '0.5'])}")
    parts.append("    def __init__(self, k=0):")
    if base in ("nn.Module", "Node"):
        parts.append("        super().__init__()")
    if base == "dict":
        parts.append("        dict.__init__(self, a=k)")
    parts += [
        f"        self.{'_n' if attribute in ('property', 'descriptor', 'getattr') else 'n'} = k + {rng.choice(['0.5', '1', '2.0'])}",
        "        self.k = k",
        f"        self.xs = {rng.choice(['[k, 1, 2.5]', '[1, k, 3]', 'collections.deque([k, 1, 2], 5)'])}",
        f"        self.d = {rng.choice(['dict(a=k, n=2)', 'collections.defaultdict(int, a=k)', 'collections.OrderedDict(a=1, b=k)', 'Settings(a=k)'])}",
        f"        self.flag = {rng.choice(['True', 'False', 'bool(k)'])}",
        "        self.name = f'n{k}'",
        "        self.nxt = None",
    ]
    if slots:
        parts.append("        self.scale = 2")
    if base == "nn.Module" and rng.random() < 0.7:
        parts.append(
            rng.choice(
                [
                    "        self.register_buffer('t', torch.ones(2, 3) * k)",
                    "        self.t = nn.Parameter(torch.ones(2, 3) * k)",
                ]
            )
        )
    else:
        parts.append("        self.t = (torch.arange(6.0).view(2, 3) * k)" + rng.choice(["", ".requires_grad_()"]))
    parts.append(f"        self.bound = {rng.choice(['self.step', 'lambda v: v + k', 'abs'])}")
    if slots:
        parts.append("        self.made = self")
    else:
        parts.append(
            rng.choice(
                [
                    "        self.made = self",
                    "        self.__dict__['made'] = self",
                    "        object.__setattr__(self, 'made', self)",
                ]
            )
            if base != "nn.Module"
            else "        self.__dict__['made'] = self"
        )
    if attribute == "property":
        parts += [
            "    @property",
            "    def n(self):",
            f"        {rng.choice(['return self._n', 'self.d[chr(97)] = 1; return self._n'])}",
        ]
        parts += ["    @n.setter", "    def n(self, value):", "        self._n = value"]
    elif attribute == "descriptor":
        parts.append("    n = Field('_n')")
    elif attribute == "getattr":
        if base == "nn.Module":
            parts += [
                "    def __getattr__(self, name):",
                "        if name == 'n':",
                "            return self._n",
                "        return super().__getattr__(name)",
            ]
        else:
            parts += [
                "    def __getattr__(self, name):",
                "        if name == 'n' and '_n' in self.__dict__:",
                "            return self._n",
                "        raise AttributeError(name)",
            ]
    parts += [
        "    twice = property(lambda self: self.n * 2)"
        if slots or rng.random() < 0.5
        else "    @functools.cached_property\n    def twice(self):\n        return self.k * 2",
        "    def bump(self, by=1):",
        f"        self.k {rng.choice(['= (self.k + by) % 4', '= by', '+= by'])}",
        "        return self.k",
        "    def total(self):",
        f"        return {rng.choice(['sum(self.xs) + self.n', 'self.n + len(self.d)', 'self.d.get(chr(97), 2) + self.k'])}",
        f"    def me(self):\n        {rng.choice(['return self', 'history.append(self.k); del history[3:]; return self'])}",
        "    def step(self, v):",
        f"        {rng.choice(['return v + self.k', 'self.flag = not self.flag; return v', 'return v * type(self).default'])}",
        "    @classmethod",
        f"    def make(cls, k):\n        {rng.choice(['return cls(k)', 'made = cls(k); made.n = 7; return made', 'cls.default = 4; return cls(1)'])}",
        "    @staticmethod",
        f"    def shared(v):\n        {rng.choice(['return v + 1', 'return v * settings.rate', 'return v - len(history)'])}",
        "    def forward(self, v):",
        f"        {rng.choice(['return v * self.n', 'return v + self.t', 'self.t = v.detach() * 0.5; return v', 'return F.relu(v) * self.scale'])}"
        if not base == "nn.Module"
        else f"        {rng.choice(['return v * self.n', 'return v + self.t', 'return F.relu(v) * self.scale'])}",
    ]
    if base != "nn.Module":
        parts.append(
            f"    def __call__(self, v=1):\n        {rng.choice(['return v', 'return self.n', 'self.k = 1; return v'])}"
        )
    else:
        parts.append("    def __call__(self, *v):\n        return super().__call__(*v) if v else 1")
    parts.append(
        f"    def __getitem__(self, i):\n        {rng.choice(['return self.xs[i]', 'return self.n + i', 'return i'])}"
    )
    parts.append(f"    def __len__(self):\n        {rng.choice(['return len(self.xs)', 'return 3'])}")
    extra = [
        "    def __bool__(self):\n        return self.flag",
        "    def __eq__(self, other):\n        return type(other) is type(self) and self.k == other.k\n    def __hash__(self):\n        return 5",
        "    def __contains__(self, v):\n        return v in self.xs",
        "    def __add__(self, other):\n        return self.n",
        "    def __repr__(self):\n        return f'<{self.k}>'",
        "    def __enter__(self):\n        self.flag = True\n        return self\n    def __exit__(self, *exc):\n        self.flag = False",
        "    def __setattr__(self, name, value):\n        settings.writes = name\n        super().__setattr__(name, value)",
        "    def __getattribute__(self, name):\n        return super().__getattribute__(name)",
        "    def __init_subclass__(cls):\n        cls.default = 5",
        "    def __iter__(self):\n        yield from self.xs",
        "    def __lt__(self, other):\n        return self.k < other.k",
        "    def __copy__(self):\n        return self",
    ]
    if base == "dict":
        extra = [e for e in extra if "__eq__" not in e and "__bool__" not in e and "__iter__" not in e]
        extra.append("    def __missing__(self, key):\n        return 2")
    chosen = rng.sample(extra, rng.choice((0, 1, 1, 2, 3)))
    if finalizer:  # an object that is part of a cycle dies whenever the collector comes by
        parts = [p for p in parts if "self.made" not in p and "['made']" not in p and "'made', self" not in p]
        parts = [p.replace("'made', ", "") if "__slots__" in p else p for p in parts]
        parts = ["        self.bound = abs" if "self.bound =" in p else p for p in parts]
        chosen.append("    made = property(lambda self: self, lambda self, value: None)")
        chosen.append("    def __del__(self):\n        settings.deleted = 1")
    parts += chosen
    return "\n".join(parts)


def functions(rng: random.Random) -> str:
    """Functions of a number, each with state of its own kind."""
    return "\n".join(
        [
            "def _count():",
            "    total = 0",
            "    def counter(v):",
            "        nonlocal total",
            f"        total {rng.choice(['= (total + 1) % 3', '= v', '+= 1'])}",
            f"        return v {rng.choice(['+ total', '* 2', '- 1'])}",
            "    return counter",
            "counter = _count()",
            "@functools.lru_cache(maxsize=4)" if rng.random() < 0.5 else "@functools.cache",
            "def remembered(v):",
            f"    {rng.choice(['return v + 1', 'history.append(1); del history[2:]; return v', 'return v * settings.rate'])}",
            "def decorate(f):",
            "    @functools.wraps(f)",
            "    def wrapper(*args, **kwargs):",
            f"        {rng.choice(['wrapper.calls = 1', 'settings.depth = 1', 'pass'])}",
            "        try:",
            "            return f(*args, **kwargs)",
            f"        {rng.choice(['finally:', 'except ZeroDivisionError:'])}",
            f"            {rng.choice(['settings.depth = 0', 'history[:] = []', 'pass'])}",
            "    return wrapper",
            "@decorate",
            f"def decorated(v):\n    return {rng.choice(['v + 1', 'v / (1 + limits.top)', 'abs(v)'])}",
            "def recursive(v, depth=2):",
            "    return v if depth == 0 else recursive(v + 1, depth - 1)",
            f"def with_default(v, into={rng.choice(['[]', '{}', 'None'])}):",
            "    if isinstance(into, list):",
            f"        {rng.choice(['into.append(1)', 'into[:] = [v]', 'into.insert(0, 2)'])}",
            "        return v + len(into)",
            "    if isinstance(into, dict):",
            f"        {rng.choice(['into[1] = v', 'into.setdefault(len(into) % 3, v)'])}",
            "        return v + len(into)",
            "    return v",
            "def generate(n):",
            "    for i in range(n):",
            f"        {rng.choice(['got = yield i', 'yield i * settings.rate', 'yield from [i]'])}",
            f"    {rng.choice(['settings.ended = n', 'return', 'pass'])}",
        ]
    )


def world(rng: random.Random) -> str:
    """All of a program but its region."""
    bases = ["", "", "nn.Module", "dict", "Mixin"]
    first, second = rng.choice(bases), rng.choice(["Node", "Node", "", "nn.Module"])
    if rng.random() < 0.2 and first == "nn.Module":
        second = "Node"
    finalizer = rng.random() < 0.08
    parts = [
        "class Settings(dict):\n    __getattr__ = dict.get" if rng.random() < 0.2 else "class Settings(dict):\n    pass",
        "class Mixin:\n    def total(self):\n        return 1",
        "class Field:\n    def __init__(self, name):\n        self.name = name\n    def __get__(self, obj, cls=None):\n        return self if obj is None else getattr(obj, self.name)\n    def __set__(self, obj, value):\n        setattr(obj, self.name, value)",
        "class Mode(enum.Enum):\n    A = 1\n    B = 2",
        "mode = Mode.A",
        "Limits = collections.namedtuple('Limits', 'top bottom')"
        if rng.random() < 0.5
        else "@dataclasses.dataclass(frozen=True)\nclass Limits:\n    top: int\n    bottom: int = 0",
        "limits = Limits(1, 0)",
        rng.choice(
            [
                "settings = types.SimpleNamespace(rate=2, depth=0)",
                "class settings:\n    rate = 2\n    depth = 0",
                "@dataclasses.dataclass\nclass _S:\n    rate: float = 2\n    depth: int = 0\nsettings = _S()",
            ]
        ),
        "history = []",
        "seen = {1, 2}",
        rng.choice(
            [
                "numbers = [1, 2, 3]",
                "numbers = (1, 2.5, 3)",
                "numbers = collections.deque([1, 2, 3])",
                "numbers = range(1, 4)",
            ]
        ),
        rng.choice(["ticks = itertools.count()", "ticks = itertools.cycle([1, 2])", "ticks = itertools.repeat(1)"]),
        "counts = collections.Counter(a=1)",
        "ring = collections.deque([1, 2, 3], 4)",
        "ordered = collections.OrderedDict(a=1, b=2)",
        "groups = collections.defaultdict(list)",
        "text = io.StringIO()",
        "array = np.arange(6.0).reshape(2, 3)",
        "stream = random.Random(3)",
        "variable = contextvars.ContextVar('variable', default=1)",
        "local_state = threading.local()",
        "local_state.k = 1",
        "weight = nn.Parameter(torch.ones(2, 3))",
        "optimizer = torch.optim."
        + rng.choice(["SGD([weight], 0.1)", "SGD([weight], 0.1, momentum=0.9)", "Adam([weight])"]),
        "pattern = re.compile('[a-z]')",
        "class Twice(torch.autograd.Function):",
        "    @staticmethod",
        "    def forward(ctx, v):",
        "        ctx.save_for_backward(v)",
        "        return v * 2",
        "    @staticmethod",
        "    def backward(ctx, g):",
        f"        {rng.choice(['return g * 2', 'return g * ctx.saved_tensors[0]', 'history.append(1); return g'])}",
        "@functools.singledispatch",
        "def dispatched(v):",
        "    return v",
        "@dispatched.register",
        "def _(v: int):",
        "    return v + 1",
        "def echo(start):",
        "    got = start",
        "    while True:",
        "        try:",
        "            got = yield got",
        "        except ValueError:",
        "            got = settings.rate",
        "class Dynamic:",
        "    def __getattr__(self, name):",
        "        if name.startswith('__'):",
        "            raise AttributeError(name)",
        "        return settings.rate if name == 'rate' else len(name)",
        "dynamic = Dynamic()",
        "tables = {'main': {'a': 1, 'b': 2.5}, 'other': {'a': 3}}",
        "log = logging.getLogger('generated')",
        node_class(rng, "Node", first, finalizer),
        node_class(rng, "Kind", second, finalizer),
        functions(rng),
        "table_of_functions = {'f': counter, 'g': decorated}",
        "class Layer(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.inner = nn.Linear(3, 3)",
        "        self.register_buffer('mean', torch.zeros(2, 3))",
        "        self.count = 0",
        "    def forward(self, v):",
        f"        {rng.choice(['self.count = (self.count + 1) % 3', 'self.mean = v.detach()', 'self.mean.mul_(0.5)', 'pass', 'pass'])}",
        f"        return {rng.choice(['self.inner(v)', 'self.inner(v) + self.mean', 'F.dropout(self.inner(v), 0.5, self.training)', 'v * self.count'])}",
        "module = Layer()",
        "layer = nn.Linear(3, 3)"
        if rng.random() < 0.7
        else "layer = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.2))",
        "normed = nn.BatchNorm1d(3)" if rng.random() < 0.5 else "normed = nn.LayerNorm(3)",
        rng.choice(
            [
                "def scaled(v):\n    return v * settings.rate",
                "def scaled(v, *, by=2):\n    global mode\n    mode = Mode.B\n    return v * by",
            ]
        ),
        f"objects = [Node(0), {rng.choice(['Kind(1)', 'Node(1)'])}]",
        rng.choice(["objects[0].nxt = objects[1]", "objects[0].nxt = objects[0]", "pass"]),
        "running = generate(50)",
        "echoing = echo(1)",
        "next(echoing)",
        "shared_view = module.mean[0]",
        "keyed = {objects[0]: 1} if Node.__hash__ else {}",
        "objects[1].nxt = Node(2)" if rng.random() < 0.5 else "objects[1].xs = objects[0].xs",
        "by_name = {'n0': objects[0], 'n1': objects[1]}"
        if rng.random() < 0.8
        else "by_name = weakref.WeakValueDictionary(n0=objects[0], n1=objects[1])",
    ]
    if rng.random() < 0.3:
        parts.append(
            f"module.register_forward_hook(lambda m, a, out: {rng.choice(['out * 2', 'history.append(1)', 'None'])})"
        )
    return "\n".join(parts)
