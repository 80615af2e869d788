"""NumPy's numbers that vary: kept outside, computed with, given to torch."""

# ruff: noqa
import numpy as np
import torch


def args(i):
    return (torch.ones(2) * (i + 0.25), i)


# === numpy_counter: calls=8
state = {"step": np.int64(0), "rate": np.float64(0.5)}


def region(x, i):
    state["step"] += 1
    return x * state["rate"], state["step"], state["step"] % 3 == 0


def change_rate():
    state["rate"] = np.float64(0.25)


def change_type_of_rate():
    state["rate"] = np.float32(0.1)


def change_to_python():
    state["rate"] = 0.75


def change_to_bool():
    state["rate"] = np.bool_(True)


def change_step():
    state["step"] = np.int64(2**62)


def change_type_of_step():
    state["step"] = np.int8(3)


def change_zero_sign():
    state["rate"] = np.float64(-0.0)


def change_nan():
    state["rate"] = np.float64("nan")


# === numpy_overflow: calls=8
state = [np.int8(120)]


def region(x, i):
    state[0] += np.int8(1)
    return x + 1, state[0]


def change_near():
    state[0] = np.int8(126)


# === numpy_functions: calls=8
scale = 0.25


def region(x, i):
    weight = 1 / (1 + np.exp(-scale * (i - 5)))
    bounded = np.clip(i * scale, 0.5, 1.5)
    return x * float(weight) + x.mean() * bounded, weight, np.sqrt(x.sum().item() + 3), np.mean([i, i + 1.0])


def change_scale():
    global scale
    scale = 1


def change_scale_large():
    global scale
    scale = 1e3


def change_scale_nan():
    global scale
    scale = float("nan")


def change_errors():
    np.seterr(all="ignore")


# === numpy_warns: calls=8
divisor = np.float64(2.0)


def region(x, i):
    return x + 1, np.float64(i) / divisor, np.log(divisor - 1.5)


def change_divisor():
    global divisor
    divisor = np.float64(4.0)


def change_to_zero():
    global divisor
    divisor = np.float64(0.0)


def change_ignored():
    global divisor
    np.seterr(divide="ignore", invalid="ignore")
    divisor = np.float64(0.0)


# === numpy_number_attributes: calls=8
held = [np.float64(1.5), np.int32(4)]


def region(x, i):
    held[0] += 1
    return x, held[0].real, held[0].dtype, held[0].item(), held[0].astype("float32"), int(held[1]), held[1].bit_length()


def change_held():
    held[0] = np.float64(7.25)


def change_other():
    held[1] = np.int32(9)


# === numpy_number_text: calls=8
held = [np.float64(1.5)]


def region(x, i):
    held[0] += 0.125
    print(held[0], f"{held[0]:.2f}", "%d" % held[0], repr(held[0]))
    return x, str(held[0])


def change_held():
    held[0] = np.float64(7.25)


def change_printing():
    np.set_printoptions(legacy="1.25")


# === numpy_number_identity: refused calls=6
held = [np.float64(1.5)]


def region(x, i):
    return x, held[0] is held[0] + 0


def change_held():
    held[0] = np.float64(7.25)


# === numpy_number_as_key: calls=8
held = [np.int64(1)]
table = {1: 0.5, 2: 0.25}


def region(x, i):
    return x * table[held[0]], table.get(held[0] + 1), [10, 20, 30][held[0]]


def change_held():
    held[0] = np.int64(2)


# === numpy_number_decides: calls=8
best = np.float32(0.5)


def region(x, i):
    return (x + 1 if i > best else x - 1), bool(best), best == 0.5, i in (best, 3)


def change_best():
    global best
    best = np.float32(3.5)


def change_zero():
    global best
    best = np.float32(0)
