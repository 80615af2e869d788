"""What a compiler may take from a busy program."""

from __future__ import annotations

import os
import threading
import time

from magpy_core.backends.fair_share import Account, FairShare, Reading, Saving
from magpy_core.backends.processor_time import Waits, used_by, used_by_tree
from magpy_core.limits import LIMITS

NOTHING = Reading(0.0, 0.0, 0.0)


def test_compiling_is_free_while_the_program_does_not_wait() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), NOTHING)
    assert share.may_run(Reading(60.0, 0.0, 60.0)) and account.taken == 0.0


def test_on_a_busy_machine_it_gets_some_seconds_at_once_and_a_part_of_the_programs_time() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), NOTHING)
    at_once = LIMITS.compile_at_once
    assert share.may_run(Reading(0.0, at_once, at_once))
    assert not share.may_run(Reading(0.0, at_once + 1, at_once + 1))
    assert not share.may_run(Reading(0.9 / LIMITS.compile_share, at_once + 2, at_once + 1))
    assert share.may_run(Reading(1.1 / LIMITS.compile_share, at_once + 3, at_once + 1))


def test_the_program_may_wait_for_others() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), NOTHING)
    assert share.may_run(Reading(10.0, 100.0, 0.5)) and account.taken == 0.5


def test_where_waiting_is_not_known_all_that_the_compiler_uses_counts() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), Reading(0.0, None, 0.0))
    assert share.may_run(Reading(0.0, None, 3.0)) and account.taken == 3.0


def test_compilations_share_one_account_and_a_run_that_lasts_long_gives_more() -> None:
    account = Account()
    one, other = (FairShare(account, account.new_slot(), NOTHING) for _ in range(2))
    used = LIMITS.compile_at_once * 0.75
    assert one.may_run(Reading(0.0, used, used))
    assert not other.may_run(Reading(0.0, used, used)) and account.taken == 2 * used
    account.expect(1000.0)
    assert other.may_run(Reading(0.0, used, used))


def test_little_is_lost_before_the_share_suffices() -> None:
    account, need, at_once = Account(), 20.0, LIMITS.compile_at_once
    share = FairShare(account, account.new_slot(), NOTHING, need)
    shown = LIMITS.alone_after
    assert share.may_run(Reading(0.0, shown - 0.1, shown - 0.1)), "it is to show what it takes"
    taken = shown + 0.2
    assert not share.may_run(Reading(0.0, taken, taken))
    assert not share.may_run(Reading(0.1 / LIMITS.compile_probe, taken, taken))
    assert share.may_run(Reading(0.3 / LIMITS.compile_probe, taken, taken)), "it shows whether compiling still takes as much"
    enough = (need - at_once) / LIMITS.compile_share + 1.0
    assert share.may_run(Reading(enough, taken, taken))
    assert share.may_run(Reading(enough, need - 1.0, need - 1.0)), "from now on, all of it"
    assert not share.may_run(Reading(enough, need + 1.0, need + 1.0)), "more was needed than it seemed"


def test_what_one_compilation_takes_tells_what_others_will() -> None:
    account, need, shown = Account(), 20.0, LIMITS.alone_after + 0.1
    one, other = (FairShare(account, account.new_slot(), NOTHING, need) for _ in range(2))
    assert not one.may_run(Reading(1.0, shown, shown))
    assert not other.may_run(Reading(1.0, 0.0, 0.0)), "it would take all that it needs, and the share doesn't suffice"
    account = Account()
    one, other = (FairShare(account, account.new_slot(), NOTHING, need) for _ in range(2))
    assert one.may_run(Reading(1.0, 0.0, shown))
    assert other.may_run(Reading(1.0, 0.0, 0.0)), "compiling takes nothing"


def test_what_is_left_costs_what_the_rest_has_cost() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), NOTHING, 40.0)
    assert share.may_run(Reading(0.0, 1.0, 20.0)), "half of 40 seconds have taken 1 from the program"
    assert share.may_run(Reading(2.0 / LIMITS.compile_share, 5.0, 30.0))


def test_a_run_after_one_that_was_too_short_is_granted_more() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), NOTHING, 20.0)
    account.expect(100.0, 25.0)
    assert share.may_run(Reading(0.0, 24.0, 24.0))
    assert not share.may_run(Reading(0.0, 35.0, 35.0))


def test_what_processes_use_and_wait() -> None:
    waits = Waits(os.getpid())
    me = os.getpid()
    before, used, by_tree = waits.seconds(), used_by(me), used_by_tree(me)
    child = os.fork()
    if not child:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    assert 0.25 <= used_by_tree(me) - by_tree <= 2.0 and used_by(me) - used < 0.2
    affinity = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [min(affinity)])  # and the thread that this one starts
        busy = threading.Thread(target=lambda: sum(i for i in range(10_000_000)))
        busy.start()
        busy.join()
    finally:
        os.sched_setaffinity(0, affinity)
    assert before is not None and (waits.seconds() or 0.0) >= before
    assert used_by(0x7FFFFFFF) == used_by_tree(0x7FFFFFFF) == 0.0


def test_what_is_sure_to_pay_back_twice_before_the_foreseen_end_is_granted_at_once() -> None:
    account, need = Account(), 20.0
    sure = FairShare(account, account.new_slot(), NOTHING, need, Saving(lambda: 0.25))
    account.expect(LIMITS.payback * need / 0.25 - 1.0)
    at_once = account.share(0.0, LIMITS.compile_share)
    assert not sure.may_run(Reading(0.0, at_once + 1.0, at_once + 1.0)), "it would save a little too little"
    account.expect(LIMITS.payback * need / 0.25 + 1.0)
    assert sure.may_run(Reading(0.0, at_once + 2.0, at_once + 2.0))
    assert account.share(0.0, LIMITS.compile_share) >= at_once + need
    other = FairShare(account, account.new_slot(), NOTHING, need)
    assert not other.may_run(Reading(0.0, need, need)), "what was granted to one is not the others'"


def test_what_is_taken_from_a_program_of_several_threads_counts_as_often() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), NOTHING)
    assert share.may_run(Reading(1.5, 0.5, 1.0, elapsed=1.0))
    assert account.taken == 2 * 0.5, "two threads, one of which has waited for half of the time"


def granted(threads: float) -> FairShare:
    """A compilation of 20 seconds, granted, with a second of it used beside a program on so many processors."""
    account = Account()
    account.expect(1e4)
    share = FairShare(account, account.new_slot(), NOTHING, 20.0, Saving(lambda: 0.5))
    assert share.may_run(Reading(threads - 0.5, 0.5, 1.0, elapsed=1.0))
    return share


def test_a_granted_compilation_that_stops_the_programs_threads_is_better_alone() -> None:
    assert not granted(1.0).is_better_alone
    share = granted(2.0)
    assert share.is_better_alone
    assert share.may_run(Reading(2.0, 0.5, 15.0, elapsed=15.0)) and share.is_better_alone, "while the program waits"
    too_late = LIMITS.payback * 20.0 + 2.0
    assert share.may_run(Reading(2.0, 0.5, 16.0, elapsed=too_late)) and not share.is_better_alone, "others are busy, too"
    share = granted(2.0)
    too_long = LIMITS.alone_most * 20.0 + 1.0
    assert share.may_run(Reading(2.0, 0.5, too_long, elapsed=too_long)) and not share.is_better_alone


def test_what_is_not_sure_to_pay_back_for_all_threads_makes_no_program_wait() -> None:
    account = Account()
    account.expect(1.5 * LIMITS.payback * 20.0 / 0.5)
    share = FairShare(account, account.new_slot(), NOTHING, 20.0, Saving(lambda: 0.5))
    share.may_run(Reading(1.5, 0.5, 1.0, elapsed=1.0))
    assert not share.is_better_alone


def test_what_the_share_suffices_for_is_better_alone_and_waiting_counts() -> None:
    account = Account()
    account.expect(41.0 / LIMITS.compile_share)
    share = FairShare(account, account.new_slot(), NOTHING, 20.0)
    assert share.may_run(Reading(1.5, 0.5, 1.0, elapsed=1.0)) and share.is_better_alone
    assert share.may_run(Reading(1.5, 0.5, 11.0, elapsed=11.0))
    assert account.taken == 2 * 0.5 + 2 * 10.0, "the program waits with all of its threads"


def test_where_the_share_never_suffices_little_is_lost() -> None:
    account = Account()
    account.expect(60.0)
    share = FairShare(account, account.new_slot(), NOTHING, 20.0)
    assert share.may_run(Reading(0.3, 0.2, 0.2)), "it is to show what it takes"
    used = LIMITS.alone_after + 0.1
    assert not share.may_run(Reading(10.0, used, used))
    assert not share.may_run(Reading(59.0, used, used))
    assert share.may_run(Reading(61.0, used, used)), "it goes on for longer"


def test_a_compilation_takes_no_more_than_its_code_will_save() -> None:
    awaited = 0.0
    account, at_once, need = Account(), LIMITS.alone_after, 10.0
    share = FairShare(account, account.new_slot(), NOTHING, need, Saving(awaited=lambda: awaited))
    assert share.may_run(Reading(10.0, 0.3, 0.3)) and share.is_worth_its_cost, "it is to show what it takes"
    assert not share.may_run(Reading(10.0, at_once, at_once)) and not share.is_worth_its_cost
    awaited = need / LIMITS.most_gain - 0.1
    assert not share.may_run(Reading(60.0, at_once, at_once))
    awaited = need / LIMITS.most_gain + 0.1
    assert share.may_run(Reading(60.0, at_once, at_once)) and share.is_worth_its_cost
    account.expect(60.0 + 30.0)
    assert not share.may_run(Reading(60.0, at_once, at_once)), "the program ends soon"


def test_a_compilation_that_takes_nothing_needs_to_save_little() -> None:
    account = Account()
    share = FairShare(account, account.new_slot(), NOTHING, 10.0, Saving(awaited=lambda: 0.1))
    assert share.may_run(Reading(10.0, 0.0, 5.0)) and share.is_worth_its_cost
    assert share.may_run(Reading(10.0, 0.02, 5.5)) and share.is_worth_its_cost
    assert not share.may_run(Reading(10.0, 0.2, 6.0))
