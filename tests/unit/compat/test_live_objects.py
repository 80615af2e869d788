"""Objects that are held weakly can be looked through while others come and go."""

from __future__ import annotations

import gc
import threading

from magpy_core._compat.cpython.live_objects import LiveObjects


class Thing:
    pass


def test_objects_may_come_and_go_while_they_are_looked_through() -> None:
    live: LiveObjects[Thing] = LiveObjects()
    things = [Thing() for _ in range(4)]
    for thing in things:
        live.add(thing)
    seen = []
    for thing in live:
        seen.append(things.index(thing))
        live.add(Thing())  # gone at once
        if len(seen) == 1:
            things.append(Thing())
            live.add(things[-1])
            things[2] = Thing()  # the third is gone
    assert seen == [0, 1, 3]
    del thing
    assert [*live] == [things[0], things[1], things[3], things[4]]
    things.clear()
    gc.collect()
    assert not [*live] and not live._references


def test_several_threads_add_and_look() -> None:
    live: LiveObjects[Thing] = LiveObjects()
    kept: list[Thing] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for i in range(2000):
                thing = Thing()
                live.add(thing)
                if i % 10 == 0:
                    kept.append(thing)
                    assert thing in [*live]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert set(live) == set(kept)
