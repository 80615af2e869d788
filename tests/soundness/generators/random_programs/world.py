"""What random programs have around their regions: classes, functions and objects, each written in ways drawn at random.

Every object of a program has the members that expressions use; whether ``n`` is an attribute, a slot, a property, a
descriptor or found by ``__getattr__`` is drawn, as are the special methods. Key function: world.
"""

from __future__ import annotations

import random
import re

from tests.soundness.generators.random_programs.expressions import sections

PRELUDE = """
import bisect, collections, contextlib, contextvars, copy, dataclasses, enum, functools, heapq, io, itertools, json, logging
import math, operator, pickle, random, re, string, sys, textwrap, threading, types, typing, warnings, weakref
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
"""
_FORMS = sections("world.txt", "\n\n")
_BASES = ["", "", "nn.Module", "dict", "Mixin"]


def _drawn(rng: random.Random, form: str, flags: frozenset[str] = frozenset()) -> str:
    """One of the ways to write ``form``, with the lines that these flags keep."""
    lines = []
    for line in form.split("\n"):
        found = re.match(r"\[(!?)(\w+)\] (.*)", line)
        if found is None or (found[2] in flags) != bool(found[1]):
            lines.append(line if found is None else found[3])
    return re.sub(r"<<(.*?)>>", lambda m: rng.choice(m[1].split(" || ")), "\n".join(lines))


def _class(rng: random.Random, name: str, base: str, native: str) -> str:
    """``native``: what ``base`` is a class of in the end: a module, a dict, or neither."""
    flags = set()
    if base == "" and rng.random() < 0.15:
        flags.add("slots")
    else:
        style = rng.choice(["plain", "plain", "property", "descriptor", "getattr"])
        flags |= {style} | ({"hidden"} if style != "plain" else set())
    flags |= {"module"} if native == "nn.Module" else {"dict"} if native == "dict" else set()
    flags |= {"super"} if native == "nn.Module" or base == "Node" else set()
    special = _FORMS["special"]
    if native == "dict":
        special = [form for form in special if not re.search("__(eq|bool|iter)__", form)]
    chosen = rng.sample(special, rng.choice((0, 1, 1, 2, 3)))
    form = _FORMS["class"][0].replace("{name}", name).replace("{base}", base)
    return _drawn(rng, "\n".join([form, *chosen]), frozenset(flags))


def world(rng: random.Random) -> str:
    """All of a program but its region."""
    first, second = rng.choice(_BASES), rng.choice(["Node", "Node", "", "nn.Module"])
    classes = [_class(rng, "Node", first, first), _class(rng, "Kind", second, first if second == "Node" else second)]
    parts = [*_FORMS["before"], *classes, *_FORMS["functions"], *_FORMS["after"]]
    return "\n".join(_drawn(rng, part) for part in parts)
