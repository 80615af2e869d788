"""Messages on the wire: whatever arrives, the decoder gives the messages that are whole and sets the rest aside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpy_core.findings import Report
from magpy_core.runner import protocol
from magpy_core.runner.channel import Channel, Forwarder
from magpy_core.runner.protocol import Decoder, Message, decode, encode
from magpy_core.runner.request import RunRequest
from magpy_core.runner.verdict import Collector
from tests.programs.runner_help import ROOT

STEP: Message = {"type": "step", "n": 3}
TEXT: Message = {"type": "finding", "finding": {"text": "2 of 3\nlines \udcff é"}}


def test_a_message_survives_the_wire() -> None:
    assert decode(encode(STEP)) == STEP
    assert decode(encode(TEXT)) == TEXT
    assert encode(TEXT).count(b"\n") == 1 and encode(TEXT).isascii()


@given(st.lists(st.sampled_from([STEP, TEXT])), st.integers(1, 50))
def test_any_cut_into_pieces_gives_the_same_messages(messages: list[Message], size: int) -> None:
    data = b"".join(encode(m) for m in messages)
    decoder = Decoder()
    got = [m for i in range(0, len(data), size) for m in decoder.feed(data[i : i + size])]
    assert got + decoder.close() == messages


@given(st.binary(max_size=200))
def test_garbage_is_noise_and_never_an_error(garbage: bytes) -> None:
    decoder = Decoder()
    got = decoder.feed(garbage + b"\n" + encode(STEP))
    assert got[-1] == STEP and len(got) == 1


@pytest.mark.parametrize(
    "line",
    [b'{"type":"step"}', b'{"type":"step","n":"3"}', b'{"type":["step"]}', b'{"type":"nonsense"}', b"[1]", b"3",
     b'{"type":"finding","finding":[]}', b"[" * 100_000],
)  # fmt: skip
def test_what_is_not_a_whole_message_is_none(line: bytes) -> None:
    assert decode(line) is None


def test_a_truncated_last_line_is_dropped_and_an_unended_whole_one_is_not() -> None:
    decoder = Decoder()
    assert decoder.feed(encode(STEP)[:-5]) == [] and decoder.close() == []
    decoder = Decoder()
    assert decoder.feed(encode(STEP)[:-1]) == [] and decoder.close() == [STEP]


def test_an_endless_line_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_LINE", 1000)
    decoder = Decoder()
    for _ in range(50):
        assert decoder.feed(b"x" * 100) == []
    assert len(decoder._tail) <= 1100
    assert decoder.feed(b"\n" + encode(STEP)) == [STEP] and decoder.left_out == [5000]


def test_the_channel_never_writes_into_a_file_of_the_programs() -> None:
    read, write = os.pipe()
    channel = Channel(write, os.getpid())  # there is no supervisor: nothing to open again
    channel.send(STEP)
    os.close(channel.fd)
    stolen = os.open("/dev/null", os.O_WRONLY)
    victim_read, victim_write = os.pipe()
    os.dup2(victim_write, channel.fd)
    os.close(victim_write)
    channel.send(STEP)
    os.close(channel.fd)
    assert os.read(victim_read, 100) == b"", "wrote into the program's own file"
    assert json.loads(os.read(read, 1000)) == STEP
    assert not channel.open
    for fd in (read, victim_read, stolen):
        os.close(fd)


def test_the_channel_sits_high_and_is_not_inherited_by_executed_programs() -> None:
    read, write = os.pipe()
    channel = Channel(write, os.getpid())
    assert channel.fd > 500 and not os.get_inheritable(channel.fd)
    os.close(channel.fd)
    os.close(read)


class _Finding:
    def __init__(self, key: str, count: int) -> None:
        self.key, self.count = key, count

    def to_json(self) -> dict[str, int]:
        return {"count": self.count}


def test_new_findings_go_out_at_once_and_repeated_ones_are_throttled() -> None:
    sent: list[int] = []
    forward = Forwarder(lambda m: sent.append(m["finding"]["count"]), interval=1000.0)  # type: ignore[typeddict-item]
    forward.flush()
    for count in range(1, 101):
        forward.finding(_Finding("a", count))  # type: ignore[arg-type]
    assert sent == [1]
    forward.flush()
    assert sent == [1, 100], "the latest count is not lost"


def test_the_parent_side_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'numpy', 'bytecode', 'psutil', 'pygls'}"
    code = f"import sys, magpy_core.runner.launch; print(sorted({heavy} & {{m.split('.')[0] for m in sys.modules}}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True).stdout == b"[]\n"


def test_a_long_line_takes_linear_time() -> None:
    """It comes in pieces of 64 KB: none of them is looked at again."""
    line = encode({"type": "failed", "code": "MP905", "message": "x" * (48 << 20), "place": None})
    decoder, messages = Decoder(), []
    begin = time.process_time()
    for at in range(0, len(line), 1 << 16):
        messages += decoder.feed(line[at : at + (1 << 16)])
    assert time.process_time() - begin < 3.0  # was 20 s
    assert len(messages) == 1 and len(messages[0]["message"]) == 48 << 20


@pytest.mark.parametrize(("told", "granted"), [(5.0, 5.0), (1e9, 30.0), (-1, 0.0), (float("nan"), 0.0)])
def test_waiting_for_a_cause_extends_the_time_limit_within_a_bound(told: float, granted: float) -> None:
    collector = Collector(RunRequest(script="train.py"))
    assert collector.take({"type": "tracing", "seconds": told, "where": []}) is not None
    assert collector.extra == granted and not collector.lowering


def test_a_message_that_is_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_LINE", 1000)
    message = {"type": "done", "report": Report("x" * 2000).to_json()}
    collector, decoder = Collector(RunRequest(script="train.py")), Decoder()
    assert decoder.feed(encode(message)) == [] and len(decoder.left_out) == 1
    remaining, outcome = collector.finish({}, decoder.noise, decoder.left_out)
    (finding,) = [f for f in outcome.report.findings if f.code == "MP901"]
    assert finding.message.startswith("The report lacks a part of 0 MB, more than")
    assert [m["type"] for m in remaining].count("finding") >= 1
