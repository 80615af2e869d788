"""Random numbers from Python's and NumPy's streams: drawn again by every replay, put back when a capture does not fit."""

# ruff: noqa
import random

import numpy as np
import torch


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === draw_product: calls=5
def region(x):
    return x * random.random() + random.random()


# === draw_unused: calls=4
def region(x):
    random.random()
    return x + 1


# === draw_decides: calls=10
def region(x):
    if random.random() < 0.5:
        return x * 2
    if random.random() < 0.5:
        return x + random.random()
    return x - 1


# === draw_then_torch: calls=8
def region(x):
    y = x + torch.rand(3)
    if random.random() < 0.4:
        y = y * torch.rand(3)
    return y


# === draw_then_data: calls=8
seen = []


def region(x):
    p = random.random()
    seen.append(p)
    if (x * p).sum() > 4:
        return x * random.random()
    return x


# === draw_randint: calls=8
def region(x):
    return x + random.randint(0, 3)


# === draw_choice: calls=8
def region(x):
    return x * random.choice([1.0, 2.0, 3.0])


# === draw_uniform_gauss: calls=8
def region(x):
    return x * random.uniform(1, 2) + random.gauss(0, 1)


# === draw_numpy: calls=6
def region(x):
    return x * np.random.uniform(0.5, 1.5) + np.random.rand() + np.random.randint(0, 3)


# === draw_both_streams: calls=8
def region(x):
    if np.random.rand() < random.random():
        return x * 2
    return x


# === draw_own_stream: calls=6
rng = random.Random(3)


def region(x):
    return x * rng.random()


def change_state():
    rng.seed(5)


def change_object():
    global rng
    rng = random.Random(7)


def change_class():
    global rng

    class Mine:
        def random(self):
            return 0.25

    rng = Mine()


# === draw_shared_stream: calls=6
a = random.Random(1)
b = random.Random(1)


def region(x):
    if a.random() < 0.5:
        return x * b.random()
    return x


def change_alias():
    global b
    b = a


# === draw_arguments_vary: calls=6
state = {"high": 2.0}


def region(x):
    return x * random.uniform(0.0, state["high"])


def change_high():
    state["high"] += 1.0


# === draw_number_vary_numpy: calls=6
state = {"high": 4}


def region(x):
    return x * np.random.randint(0, state["high"])


def change_high():
    state["high"] += 1


# === draw_replaced: calls=6
def region(x):
    return x * random.random()


def change_function():
    random.random = lambda: 0.5


def change_back():
    random.random = random._inst.random


# === draw_raises: calls=6
def region(x):
    if random.random() < 0.5:
        raise ValueError("unlucky")
    return x


# === draw_shuffle: calls=6
def region(x):
    order = [0, 1]
    random.shuffle(order)
    return x[order[0]]


# === draw_array: calls=4
def region(x):
    return x * torch.from_numpy(np.random.rand(3)).float()


# === seed_inside: refused calls=4
def region(x):
    random.seed(4)
    return x * random.random()


# === mixup: calls=6
def region(x):
    lam = np.random.beta(0.4, 0.4)
    index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index]


# === torch_seed_inside: calls=5, refused
def region(x):
    torch.manual_seed(7)
    return x * torch.rand(3)


# === torch_seed_varies: calls=5, refused
state = {"seed": 1}


def region(x):
    torch.manual_seed(state["seed"])
    return x * torch.rand(3)


def change_seed():
    state["seed"] += 1


# === torch_state_kept: calls=5, refused
def region(x):
    state = torch.get_rng_state()
    a = x * torch.rand(3)
    torch.set_rng_state(state)
    return a, x * torch.rand(3)


# === torch_state_outside: calls=5, refused
state = torch.get_rng_state()


def region(x):
    torch.set_rng_state(state)
    return x * torch.rand(3)


def change_state():
    state.copy_(torch.manual_seed(9).get_state())


# === torch_forked: calls=6, refused
def region(x):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        a = x * torch.rand(3)
        if a.sum() > 6:
            a = a + torch.rand(3)
    return a, torch.rand(3)


# === torch_forked_twice: calls=5, refused
def region(x):
    with torch.random.fork_rng(devices=[]):
        a = x * torch.rand(3)
        with torch.random.fork_rng(devices=[]):
            a = a + torch.rand(3)
        a = a - torch.rand(3)
    return a, torch.rand(3)


# === torch_seed_raises: calls=5, refused
def region(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        if x.sum() > 12:
            raise ValueError("too large")
    return x * torch.rand(3)


# === draw_made_inside: calls=6
seed = 3


def region(x):
    rng = random.Random(seed)
    picked = rng.sample(range(10), 3)
    rng.shuffle(picked)
    return x * rng.random() + picked[0] + rng.gauss(0, 1) + rng.choice("ab").count("a")


def change_seed():
    global seed
    seed = "four"


def change_seed_kind():
    global seed
    seed = 2.5


# === draw_made_inside_kept: calls=6
kept = []


def region(x):
    rng = random.Random(5)
    y = x * rng.random()
    kept.append(rng)
    return y, rng.getrandbits(8), [k.random() for k in kept[-1:]]


def change_reader():
    kept.append(kept[0].random())
    kept.pop()


# === draw_made_inside_returned: calls=6
def region(x):
    rng = random.Random(5)
    return x * rng.random(), rng


# === draw_seeded_by_the_clock: calls=4
def region(x):
    rng = random.Random(5)
    rng.seed(None)
    unseeded = random.Random()
    return x * (0 < rng.random() < 1) + unseeded.random() * 0


# === draw_seeded_by_a_varying_number: calls=6
def region(x, i=[0]):
    i[0] += 1
    rng = random.Random(i[0])
    return x * rng.random()


# === draw_of_a_class_of_its_own: calls=4
class Counting(random.Random):
    def random(self):
        self.drawn = getattr(self, "drawn", 0) + 1
        return super().random()


def region(x):
    rng = Counting(5)
    return x * rng.random() + rng.drawn


# === draw_made_inside_state_from_outside: calls=6
state = random.Random(1).getstate()


def region(x):
    rng = random.Random(5)
    rng.setstate(state)
    return x * rng.random()


def change_state():
    global state
    state = random.Random(9).getstate()


def change_inner_state():
    global state
    version, words, gauss = state
    state = version, (*words[:3], words[3] ^ 255, *words[4:]), gauss


# === draw_below: calls=10
def region(x):
    left = random.randint(0, 4)
    return x.repeat(1, 3)[:, left : left + 4] * left


# === draw_by_rejection: calls=8
def region(x):
    return x * random.betavariate(0.4, 0.4) + random.gammavariate(2.0, 1.0) - random.vonmisesvariate(1.0, 2.0)


# === draw_pairs_of_normal_numbers: calls=8
def region(x):
    return x * random.gauss(0.0, 1.0) + random.normalvariate(1.0, 2.0)


# === draw_from_a_stream_of_the_program: calls=8
stream = random.Random(3)


def region(x):
    return x * stream.randint(1, 6) + stream.betavariate(2.0, 3.0)


# === draw_from_a_generator: calls=8
generator = np.random.default_rng(3)


def region(x):
    return x * generator.normal(1.0, 0.1) + generator.random()


# === draw_from_a_stream_made_inside: calls=4
def region(x):
    own = random.Random(5)
    return x * own.randint(1, 6) + own.betavariate(2.0, 3.0)


# === draw_that_decides_after_rejections: calls=10
def region(x):
    if random.randint(0, 2) == 0:
        return x * 2
    return x + random.randrange(5)


# === draw_by_native_code: calls=8
def region(x):
    return x * sum(map(random.randint, (0, 0), (5, 9)))


# === draw_by_a_method_that_the_program_has_replaced: calls=8
patched = random.Random(3)
asked = [0]


def own_random():
    asked[0] += 1
    return 0.25 + 0.01 * asked[0]


patched.random = own_random


def region(x):
    asked[0] += 1
    return x * patched.betavariate(2.0, 3.0) + asked[0]


# === draw_by_a_method_that_is_replaced_later: calls=8
later = random.Random(3)
asked = [0]


def own_random():
    asked[0] += 1
    return 0.25 + 0.01 * asked[0]


def region(x):
    asked[0] += 1
    return x * later.betavariate(2.0, 3.0) + asked[0]


def change_method():
    later.random = own_random


# === draw_from_generators_that_share_their_bits: calls=12
bits = np.random.PCG64(3)
one, other = np.random.Generator(bits), np.random.Generator(bits)


def region(x):
    first, second = one.random(), other.random()
    if first + second < 1.0:
        return x * first + second
    return x - first * one.normal(0.0, 1.0)


# === draw_of_draws: calls=10
size = 8


def region(x):
    h, w = random.randint(1, 4), random.randint(1, 4)
    top, left = random.randint(0, size - h), random.randrange(size - w + 1)
    low = random.uniform(top, top + 1)
    return x * (top + h) + left * w, low, np.random.randint(h, h + 5), random.choice([5, 6, 7][: 1 + h % 3])


def change_size():
    global size
    size = 9


def change_small():
    global size
    size = 3


def change_float():
    global size
    size = 8.0


# === draw_of_draws_sizes: calls=10
def region(x):
    y = x.new_zeros(8, 8)
    h, w = random.randint(1, 4), random.randint(1, 4)
    top, left = random.randint(0, 8 - h), random.randint(0, 8 - w)
    y[top : top + h, left : left + w] = 1
    return x.sum() + y.sum(), y


# === draw_rows: calls=8
rows = torch.arange(12.0)


def region(x):
    index = np.random.choice(12, 3, replace=False)
    order = np.random.permutation(12)
    return x.sum() + rows[torch.as_tensor(index)], rows[torch.from_numpy(order)], rows[torch.tensor(index)] * 2


def change_rows():
    global rows
    rows = torch.arange(14.0)


# === draw_rows_used_as_numbers: calls=8
def region(x):
    index = np.random.choice(12, 3, replace=False)
    return x * float(index[0]), index.sum(), index.tolist(), (index > 5).sum()


# === draw_rows_leave: calls=6
def region(x):
    return x, np.random.permutation(4)


# === draw_rows_written: refused calls=6
def region(x):
    index = torch.from_numpy(np.random.permutation(4))
    index.add_(1)
    return x[0] * index.sum()


# === draw_rows_written_first: refused calls=6
def region(x):
    index = np.random.permutation(4)
    index[0] = 7
    return x[0] * torch.from_numpy(index).sum()


# === draw_rows_and_array: calls=6
def region(x):
    index = np.random.permutation(4)
    rows = torch.from_numpy(index)
    return x[0] * rows.sum(), index.sum()


# === draw_rows_returned: calls=6
kept = []


def region(x):
    rows = torch.from_numpy(np.random.permutation(4))
    kept.append(rows)
    return x[0], rows


# === draw_as_argument_of_an_array: calls=8
def region(x):
    k = random.randint(1, 3)
    return x.sum() + k, np.random.choice(5, k).sum()


# === rows_of_an_array_from_outside: calls=9
order = np.arange(12)
position = 0
rows = torch.arange(12.0)


def region(x):
    global position
    batch = order[position : position + 4]
    position = (position + 4) % 12
    return x.sum() + rows[torch.from_numpy(batch)], rows[torch.as_tensor(order)].sum()


def change_order():
    order[:] = order[::-1].copy()


def change_size():
    global order
    order = np.arange(11)


def change_kind():
    global order
    order = np.arange(12, dtype=np.int32)


# === rows_written_through: refused calls=6
values = np.zeros(4)


def region(x):
    shown = torch.from_numpy(values)
    shown.add_(1)
    return x.sum() + shown


# === rows_written_in_array: refused calls=6
values = np.zeros(4)


def region(x):
    shown = torch.from_numpy(values)
    values[0] = x.sum().item()
    return x.sum() + shown.sum()


# === drawn_from_arrays: calls=8
weights = np.array([1.0, 2.0, 3.0, 4.0])
values = np.arange(4.0) * 10
generator = np.random.default_rng(3)


def region(x):
    chosen = np.random.choice(4, 3, p=weights / weights.sum())
    picked = torch.from_numpy(np.random.choice(values, 2))
    mixed = torch.from_numpy(generator.permutation(values))
    rows = generator.choice(4, size=2, replace=False, p=weights / weights.sum())
    return torch.from_numpy(values[chosen]).sum() * x, picked, mixed, rows, x.sum() * float(np.random.rand())


def change_weights():
    weights[0] = 9.0


def change_to_what_raises():
    weights[:] = float("nan")


def change_values():
    values[1] = -5.0


def change_size():
    global weights, values
    weights, values = np.ones(4), np.arange(7.0)


def change_kind():
    global values
    values = [0.0, 1.0, 2.0, 3.0]


# === drawn_from_an_array_that_is_written: calls=8
weights = np.array([1.0, 2.0, 3.0, 4.0])


def region(x):
    before = np.random.choice(4, 3, p=weights / weights.sum())
    weights[2] = 9.0
    after = np.random.choice(4, 3, p=weights / weights.sum())
    return x * torch.from_numpy(before).sum(), torch.from_numpy(after)


def change_weights():
    weights[0] = 9.0


# === drawn_from_an_array_with_what_the_graph_computes: refused calls=8
weights = np.array([1.0, 2.0, 3.0, 4.0])


def region(x):
    weights[2] = x.abs().sum().item()
    return x, torch.from_numpy(np.random.choice(4, 3, p=weights / weights.sum()))
