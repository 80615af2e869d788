"""Native code that reads attributes, or calls what it is given: nothing of it has an event, all of it needs its guards."""

# ruff: noqa
import collections, copy, dataclasses, functools, inspect, itertools, json, operator, pickle, types
import torch


class Point:
    __match_args__ = ("a",)

    def __init__(self, a, b):
        self.a = a
        self.b = b
        self.names = [b, "x"]


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b


class Viewed:
    a = property(operator.attrgetter("hidden.a"))

    def __init__(self, hidden):
        self.hidden = hidden


class Listed(list):
    pass


Pair = collections.namedtuple("Pair", "a b")
point = Point(3, 4.5)
slots = Slots(3, 4.5)
pair = Pair(3, 4.5)
space = types.SimpleNamespace(a=3, b=[1, 2])
error = ValueError(3)
table = {1: 5, 2: 1, 3: 9}
lists = [[1, 2], [3]]
log = []
chosen = {1, 3}


def args(i):
    return (torch.arange(6.0).reshape(2, 3) + i,)


def change_numbers():
    global pair
    point.a += 1
    slots.a += 1
    pair = pair._replace(a=pair.a + 1)
    space.a += 1
    error.args = (error.args[0] + 1,)
    table[2] += 7
    lists[1].append(5)


def change_lists():
    point.names.append("y")
    space.b.append(3)
    lists[0].insert(0, 9)
    chosen.symmetric_difference_update({2})
    log.append(0)


def change_class():
    Point.__match_args__ = ("b",)


def change_extra():
    point.c = 1


def change_removed():
    if hasattr(slots, "b"):
        del slots.b


# === native_attrgetter
def region(x):
    return x * operator.attrgetter("a")(point) + operator.attrgetter("a", "b")(slots)[0]


# === native_attrgetter_chain: refused
viewed = Viewed(point)


def region(x):
    return x * operator.attrgetter("hidden.a")(viewed) + viewed.a


# === native_attrgetter_key
def region(x):
    first = min([Point(4, 1), point, slots], key=operator.attrgetter("a"))
    return x * first.a + sum(map(operator.attrgetter("b"), (point, slots)))


# === native_named_tuple
def region(x):
    return x * pair.a + pair.b


# === native_named_tuple_argument
def args(i):
    return (torch.arange(3.0), Pair(1 + i // 2, torch.ones(3) * i))


def region(x, p):
    return x * p.a + p.b


# === native_match_positional
def region(x):
    match point:
        case Point(3):
            return x + 1
        case Point(k):
            return x * k


# === native_match_keyword
def region(x):
    match {"p": point, "q": slots}:
        case {"p": Point(a=3, b=b)}:
            return x * b
        case {"q": Slots(a=k)}:
            return x - k


# === native_copy_object
def region(x):
    one = copy.copy(point)
    one.b = x
    return one, x * one.a


# === native_copy_slots
def region(x):
    one = copy.copy(slots)
    one.b = x
    return x * one.a


# === native_copy_namespace
def region(x):
    one = copy.copy(space)
    return x * one.a + len(one.b)


# === native_copy_list_with_attributes
listed = Listed([1, 2])
listed.a = 3


def change_listed():
    listed.a += 1


def region(x):
    return x * copy.copy(listed).a


# === native_getstate
def region(x):
    return x * point.__getstate__()["a"] + point.__reduce_ex__(2)[2]["b"]


# === native_format: refused
def region(x):
    print("{0.a} {p.names[0]} {s.a:{w.a}}".format(point, p=point, s=slots, w=space), "{a.b}".format_map({"a": point}))
    return x * int("{.a}".format(point))


# === native_namespace_text
def region(x):
    print(f"{space}", repr(space))
    return x + len(str(space))


# === native_namespace_equal
def region(x):
    return x * 2 if space == types.SimpleNamespace(a=3, b=[1, 2]) else x


# === native_error_text
def region(x):
    return x * int(str(error))


# === native_slot_descriptor
def region(x):
    return x * Slots.a.__get__(slots)


# === native_getattr_static
def region(x):
    return x * inspect.getattr_static(point, "a") + len(inspect.getmembers(space)) * 0


# === native_json_default
def region(x):
    return x * json.loads(json.dumps(point, default=lambda p: p.__dict__))["a"]


# === native_map_getattr
def region(x):
    return x * sum(map(getattr, [point, slots], ["a", "a"])) + list(itertools.starmap(getattr, [(point, "b")]))[0]


# === native_key_is_get
def region(x):
    return x * max(table, key=table.get) + sorted([1, 2, 3], key=table.__getitem__)[0]


# === native_sort_by_get
def region(x):
    keys = [1, 2, 3]
    keys.sort(key=table.get)
    return x * keys[0] + len(list(filter(chosen.__contains__, keys)))


# === native_map_get
def region(x):
    return x * sum(map(table.get, [1, 2])) + list(map(functools.partial(operator.getitem, table), [2]))[0]


# === native_map_append
def region(x):
    collections.deque(map(log.append, [1, 2]), maxlen=0)
    return x + len(log)


# === native_map_append_generator
def region(x):
    list(map(log.append, (k for k in (1, 2))))
    return x * 2


# === native_map_len
def region(x):
    return x * sum(map(len, lists)) + list(map(len, (v for v in lists)))[0] + list(map(len, reversed(lists)))[0]


# === native_sum_of_lists
def region(x):
    return x * len(sum(lists, [])) + len(sorted(iter(lists))[-1]) + sum(functools.reduce(operator.add, lists))


# === native_factory
def region(x):
    made = collections.defaultdict(lists[0].copy)
    return x * made[0][-1] + len(made)


# === native_key_gives_container
def region(x):
    return x * sorted([1, 2], key=lambda k: lists[0] if k == 1 else [1, 2, 2])[0]


# === native_methodcaller
def region(x):
    return x * operator.methodcaller("get", 2)(table) + len(list(map(operator.methodcaller("copy"), lists))[0])


# === native_pickle: refused
def region(x):
    return x * pickle.loads(pickle.dumps(point)).a


# === default_of_a_function_behind_a_partial: calls=4
def scaled(x, by, plus=0.0):
    return x * by + plus


f = functools.partial(scaled, by=2.0)


def region(x):
    return list(map(f, [x, x + 1])), collections.defaultdict(functools.partial(scaled, x, 3.0))["k"]


def change_default():
    scaled.__defaults__ = (scaled.__defaults__[0] + 1.0,)


def change_code():
    scaled.__code__ = (lambda x, by, plus: x - by - plus).__code__


# === method_of_a_class_that_native_code_calls: calls=4
class Adder:
    by = 1.0

    def __call__(self, x):
        return x + self.by


class Holder:
    def __init__(self, x, times=2.0):
        self.x = x * times


adder = Adder()


def region(x):
    return list(map(adder, [x])), next(map(Holder, [x])).x, functools.reduce(Adder.__call__, [adder, x])


def change_call():
    Adder.__call__ = lambda self, x: x - 7


def change_init():
    Holder.__init__ = lambda self, x: setattr(self, "x", x * 5)


def change_default():
    Holder.__init__.__defaults__ = (9.0,)


# === attribute_by_an_instance_of_a_subclass_of_str: calls=5
class Name(str):
    pass


class Plain:
    pass


o = Plain()
o.value = 1.0
o.count = 0
value, count = Name("value"), Name("count")


def region(x):
    o.__dict__[value] = o.__dict__[value] + 1
    o.__dict__.update({count: o.count + 1})
    return x * o.value, o.__dict__.get(count), [type(k).__name__ for k in vars(o)]


def change_value():
    o.value = 40.0


# === nan_that_is_another: nograd calls=8
nan = float("nan")
others = [nan, float("nan"), nan, float("nan"), float("nan")]
values = [nan, 1.0]
best = {"loss": nan}


def region(x, k):
    return x, k in values, values.count(k), (k, 1) == (nan, 1), best["loss"] in values


def args(i):
    return torch.ones(2), others[i % 5]


def change_best():
    best["loss"] = float("nan")


# === isinstance_of_outside_classes
settings = types.SimpleNamespace(classes=(int, (str, bytes)), value=1)


def region(x):
    return isinstance(settings.value, settings.classes), issubclass(bool, settings.classes), x * 2


def args(i):
    return (torch.ones(2),)


def change_classes():
    settings.classes = (int, (list, bytes)) if settings.classes[0] is str else (str, (int, bytes))


def change_to_none_of_them():
    settings.classes = (str, (bytes,))


def change_value():
    settings.value = "text"


# === constant_sets
kind, others = "sum", frozenset({"max"})


def region(x):
    y = x * 2 if kind in {"sum", "mean"} else x * 3
    if x.dim() not in {1, 3}:
        y = y + 1
    for n in {1, 2, 4}:
        y = y + n
    return y - 1 if kind in others else y


def change_kind():
    global kind
    kind = "max"


def change_others():
    global others
    others = frozenset({"sum"})
