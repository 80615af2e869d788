"""Texts with numbers in them that vary: moved and stored as they are, made again by replay; used otherwise, guarded."""

# ruff: noqa
import collections
import json
import logging
import random

import torch

log = logging.getLogger("texts")
lines = []


def args(i):
    return (torch.ones(2) * (i + 0.25), i)


# === text_is_stored_and_returned: calls=8
holder = type("Holder", (), {})()


def region(x, i):
    value = x.sum().item()
    lines.append(f"{i}: {value:.3f}")
    holder.text = f"{value!r:>20}|{i:+d}|{i:x}"
    return f"{i}", f"{value}", {"a": [f"{i}{value}"]}


# === text_of_one_character: calls=12
table = {"last": ""}


def region(x, i):
    table["last"] = f"{i % 10}"
    lines.append(f"{i % 10}")
    return table["last"]


# === text_of_a_type_that_changes: calls=12
state = {"n": 0}


def region(x, i):
    state["n"] += 1
    lines.append(f"n={state['n']:3} {state['n']!s}")
    return x


def change_to_float():
    state["n"] = 0.5


def change_to_bool():
    state["n"] = True


def change_to_large():
    state["n"] = 10**400


def change_to_negative():
    state["n"] = -3


def change_to_nan():
    state["n"] = float("nan")


def change_to_subclass():
    class Loud(int):
        def __format__(self, spec):
            return f"LOUD {int(self)}"

        def __add__(self, other):
            return Loud(int(self) + other)

    state["n"] = Loud(2)


# === text_that_raises_for_a_large_number: calls=8
state = {"n": 0}


def region(x, i):
    state["n"] += 1
    return f"{state['n']:.2f}"


def change_to_large():
    state["n"] = 10**400


# === text_as_a_character: calls=8
def region(x, i):
    return f"{65 + i:c}", "%c" % (65 + i), "{:c}".format(65 + i)


# === text_is_compared: calls=8
def region(x, i):
    text = f"{i}"
    if text == "3":
        return x * 2
    if text in ("1", "4") or text > "6":
        return x * 3
    return x


# === text_is_a_key: calls=8
seen = {}


def region(x, i):
    seen[f"k{i % 3}"] = i
    return {f"k{i % 2}": x}, len(seen), f"k{i % 3}" in seen


# === text_in_a_set: calls=8
names = set()


def region(x, i):
    names.add(f"{i % 4}")
    return {f"{i % 2}", "0"}, len(names)


# === text_is_measured: calls=12
def region(x, i):
    text = f"{i}"
    if len(text) > 1:
        return x * 2
    return x * len(f"{x.sum().item():.1f}")


# === text_is_indexed: calls=12
def region(x, i):
    text = f"{i:02d}"
    first, second = text
    return x * (2 if text[0] == "1" else 1), [*text], text[1:], first + second, [c for c in text]


# === text_is_tested: calls=6
def region(x, i):
    return x * 2 if f"{i}" else x


# === text_becomes_a_number: calls=8
def region(x, i):
    return x * int(f"{i}") + float(f"{x.sum().item():.2f}")


# === text_names_an_attribute: calls=8
holder = type("Holder", (), {"a0": 1.0, "a1": 2.0, "a2": 3.0})()


def region(x, i):
    setattr(holder, f"b{i % 2}", i)
    return x * getattr(holder, f"a{i % 3}"), hasattr(holder, f"a{i}")


# === text_of_methods: calls=12
def region(x, i):
    text = f" {x.sum().item():.1f} {i}"
    moved = text.strip().upper().rjust(12).replace(" ", "_")
    lines.append(moved)
    return moved, text.split(), text.startswith(" 1"), text.encode()


# === text_of_a_bound_method: calls=8
def region(x, i):
    text = f"{i};"
    return list(map(text.__add__, ["a", "b"])), list(map(text.startswith, ["1", "2"]))


# === text_is_joined: calls=8
def region(x, i):
    parts = [f"{i}", "b", f"{x.sum().item():.2f}"]
    lines.append(", ".join(parts))
    lines.append("-".join(f"{k}={v}" for k, v in {"i": f"{i}", "c": "d"}.items()))
    lines.append(f"{i}".join(["a", "b"]))
    return "".join(reversed(parts)), "".join(sorted(parts))


# === text_joined_from_a_generator_that_stops: calls=8
def parts_of(i):
    yield f"{i}"
    if i == 4:
        raise ValueError("four")
    yield "b"


def region(x, i):
    try:
        return "+".join(parts_of(i)), "+".join(next(parts_of(i)) for _ in range(2))
    except ValueError as error:
        return str(error)


# === text_by_percent: calls=8
def region(x, i):
    value = x.sum().item()
    lines.append("%d/%s %5.2f%% %r" % (i, "a", value, value))
    lines.append("%s" % value)
    return "%d" % value, "%(i)d" % {"i": i}, "%*d" % (i + 1, 3), "%x" % i


# === text_by_percent_of_infinity: calls=8
state = {"v": 1.0}


def region(x, i):
    state["v"] *= 2.0
    return "%d" % state["v"]


def change_to_infinity():
    state["v"] = float("inf")


# === text_by_format: calls=8
holder = type("Holder", (), {"real": 1})()


def region(x, i):
    value = x.sum().item()
    lines.append("{} [{}] {:.2f} {!r}".format("a", i, value, value))
    lines.append("{loss:.3f} {0}".format(i, loss=value))
    return "{0.real} {1}".format(holder, i), "{:{}}".format(value, i + 5), "{v[0]}".format(v=[i])


# === text_by_str_and_repr: calls=8
def region(x, i):
    value = x.sum().item()
    lines.append(str(value) + repr(i) + format(value, ".1e") + ascii(i))
    return str(i), str([i]), repr((value,)), format(i, ">5")


# === text_added: calls=8
holder = type("Holder", (), {"text": ""})()


def region(x, i):
    holder.text = ""
    holder.text += f"{i}"
    holder.text += "!"
    return holder.text + "?", f"{i}" * 2


# === text_kept_between_calls: calls=8
holder = type("Holder", (), {"text": "start"})()


def region(x, i):
    before = holder.text
    holder.text = f"step {i}"
    return before


# === text_printed_and_logged: calls=8
def region(x, i):
    value = x.sum().item()
    print(f"[{i:03d}] loss {value:.4f}")
    print("lr", f"{value:.2e}", sep="=", end=f"{i};\n")
    log.warning(f"step {i}")
    log.warning("step %s", f"{i}")
    log.info(f"hidden {value}")
    return x


def change_level():
    log.setLevel(logging.ERROR)


def change_level_back():
    log.setLevel(logging.INFO)


# === text_in_json: calls=8
def region(x, i):
    value = x.sum().item()
    lines.append(json.dumps({"step": i, "loss": round(value, 3), "tags": ["a", {"n": f"{i}"}], "none": None}))
    lines.append(json.dumps([i, value], indent=2))
    return json.dumps(i), json.dumps({i: value}), json.dumps({"b": value, "a": i}, sort_keys=True)


# === text_in_json_of_state: calls=8
state = {"step": 0, "name": "a"}


def region(x, i):
    state["step"] += 1
    return json.dumps(state), json.dumps({"all": state, "i": i})


def change_name():
    state["name"] = "b"


def change_entry():
    state["more"] = [1]


def change_to_odd():
    state["step"] = 0.5


# === text_by_own_methods: calls=8
class Meter:
    def __init__(self):
        self.value = 0.0

    def __str__(self):
        return f"meter {self.value:.2f}"

    def __format__(self, spec):
        return f"<{self.value:{spec or '.1f'}}>"

    def __repr__(self):
        return f"Meter({self.value})"


meter = Meter()


def region(x, i):
    meter.value += x.sum().item()
    lines.append(str(meter))
    return f"{meter}", f"{meter!r}", f"{meter:.3f}", "%s" % meter, "{}".format(meter), [meter] and str([meter])


# === text_in_an_error: calls=8
def region(x, i):
    try:
        if i % 2:
            raise ValueError(f"bad {i}")
    except ValueError as error:
        return str(error), error.args
    return x


# === text_that_leaves_by_an_error: calls=6
def region(x, i):
    if i > 2:
        raise ValueError(f"bad {i}")
    return x


# === text_is_identical: calls=6
def region(x, i):
    text = f"step {i}"
    again = text
    return text is again, text


# === text_in_match: calls=8
def region(x, i):
    match f"{i}":
        case "1":
            return x * 2
        case "3" | "5":
            return x * 3
    return x


# === text_with_spec_from_outside: calls=8
config = {"spec": ".2f"}


def region(x, i):
    return f"{x.sum().item():{config['spec']}}", f"{i:{i + 3}}", f"{i:{'>'}{5}}"


def change_spec():
    config["spec"] = ".4e"


def change_spec_to_none():
    config["spec"] = ""


# === text_of_drawn_numbers: calls=8
def region(x, i):
    value = random.random()
    lines.append(f"{value:.3f} {random.randint(0, 9)}")
    return x * value


# === text_of_a_condition: calls=8
def region(x, i):
    value = x.sum().item()
    text = f"{value:.2f}" if value > 5 else "small"
    lines.append(text)
    return text


# === text_of_a_tensor: calls=5
def region(x, i):
    return f"{x.sum()}", f"{x.sum():.2f}", f"{x}"


# === text_in_a_deque: calls=8
recent = collections.deque(maxlen=3)


def region(x, i):
    recent.append(f"{i}")
    return list(recent)[-1], recent.count("2"), "3" in recent


# === text_passed_to_functions: calls=8
def shown(text, *more, **options):
    lines.append(text)
    return [text, *more, options]


class Note:
    def __init__(self, text):
        self.text = text


def region(x, i):
    note = Note(f"{i}")
    return shown(f"{i}", f"{i}a", end=f"{i}b"), note.text, sorted([f"{i}", "2"]), max(f"{i}", "4")


# === text_by_own_items: calls=8
class Items:
    def __init__(self, value, n):
        self.value, self.n = value, n

    def __getitem__(self, key):
        return getattr(self, key) if key != "text" else f"{self.n}!"

    def keys(self):
        return ["n", "text"]


def region(x, i):
    items = Items(x.sum().item(), i)
    return "%(n)d %(text)s %(value).2f" % items, "{n} {text}".format_map(items), "{n} {text}".format(**items), items["text"]


# === text_as_an_option: calls=6
def region(x, i):
    name = f"{'mean' if i % 2 else 'sum'}"
    return torch.nn.functional.mse_loss(x, x + 1, reduction=name), torch.einsum(
        f"{'ij' if i < 9 else 'i'}->i"[-4:-3] + "->i" if False else "i->i", x
    )
