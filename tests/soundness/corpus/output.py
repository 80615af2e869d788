"""Soundness corpus: log records and warnings under settings that change between calls."""

# ruff: noqa
import logging
import warnings

import torch


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === get_logger
logging.getLogger("soundness.named")


def region(x):
    logging.getLogger("soundness.named").info("by name")
    return x * 2


def change_level():
    import logging

    logging.getLogger("soundness.named").setLevel(logging.ERROR)


# === get_logger_first
def region(x):
    logging.getLogger(__name__ + ".made").info("first")
    return x * 2


# === module_level_log
def region(x):
    logging.info("to the root %d", 4)
    logging.log(logging.WARNING, "by level")
    return x * 2


# === log_switched_on
logger = logging.Logger("soundness.off", logging.ERROR)  # the world's own
logger.parent = logging.root


def region(x):
    logger.debug("a tensor %s", x)
    logger.info("plain")
    return x * 2


def change_level():
    logger.setLevel(logging.INFO if logger.level == logging.ERROR else logging.ERROR)


# === log_disabled_everywhere
logger = logging.Logger("soundness.everywhere")
logger.parent = logging.root


def region(x):
    logger.info("unless disabled")
    return x * 2


def change_disabled():
    logger.disabled = not logger.disabled


# === log_stacklevel
logger = logging.getLogger("soundness.stacklevel")


def say(text):
    logger.info(text, stacklevel=2)


def region(x):
    say("one")
    say("two")
    return x * 2


# === log_exception: refused
logger = logging.getLogger("soundness.exception")


def region(x):
    try:
        raise ValueError("inside")
    except ValueError:
        logger.exception("caught")
    return x * 2


# === log_rebound
logger = logging.getLogger("soundness.first")


def region(x):
    logger.info("which logger")
    return x * 2


def change_logger():
    global logger
    import logging

    logger = logging.getLogger("soundness.second")


# === warn_instance
def region(x):
    warnings.warn(UserWarning("an object"))
    warnings.warn(f"sizes {list(x.shape)}", FutureWarning)
    return x * 2


# === warn_counted
class Counter:
    n = 0


counter = Counter()


def region(x):
    counter.n += 1
    if counter.n > 2:
        warnings.warn("more than two")
    return x * counter.n


# === warn_caught: refused
def region(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("seen inside")
    return x * len(caught)


# === warn_silenced
def region(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x * 2
    return y


# === filters_changed: refused
def region(x):
    warnings.simplefilter("always", append=True)
    return x * 2


# === warn_as_error: refused
def region(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("raised")
        except UserWarning:
            x = x + 1
    return x
