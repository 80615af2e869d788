"""Which names hold secrets, and that what was noted is in no text from then on."""

from __future__ import annotations

import pytest

from magpy_core.findings import Finding, Location, Position, Range, Value, secrets
from magpy_core.findings.secrets import REDACTED, is_secret, note, redact, redact_json


@pytest.fixture(autouse=True)
def none_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_texts", secrets._Texts())


@pytest.mark.parametrize(
    "name",
    ["token", "HF_TOKEN", "hfToken", b"API_KEY", "key", "secret_key", "password", "db_passwd", "auth", "authHeader",
     "credentials", "Authorization", "APIKey", "privateKey"],
)  # fmt: skip
def test_names_of_secrets(name: str | bytes) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["monkey", "tokens", "keys", "keyword", "author", "tokenizer", "key_size", "x", "", b"PATH"]
)
def test_other_names(name: str | bytes) -> None:
    assert not is_secret(name)


def test_only_text_is_a_secret() -> None:
    assert (
        not note("token", 3) and not note("token", ["abcdefgh"]) and not note("token", "") and not note("mode", "abcdefgh")
    )
    assert redact("3 abcdefgh") == "3 abcdefgh"
    assert note("token", "abcdefgh") and note("password", b"bytes-of-it")
    assert redact("(abcdefgh, b'bytes-of-it')") == f"({REDACTED}, b'{REDACTED}')"


def test_a_long_one_is_found_where_it_was_cut() -> None:
    long = "eyJ0" + "".join(chr(97 + i % 26) for i in range(400))
    note("token", long)
    assert redact(f"<{long}>") == f"<{REDACTED}>"
    assert redact(f"'{long[:79]}…") == f"'{REDACTED}…"


def test_escapes_in_a_repr() -> None:
    note("password", "it's\na \\ pass")
    assert "pass" not in redact(repr("it's\na \\ pass")) and "pass" not in redact("it's\na \\ pass")


def test_short_ones_only_where_they_are_quoted() -> None:
    note("password", "abc")
    assert redact("abcdef 'abc' b'abc' \"abc\"") == f"abcdef {REDACTED} {REDACTED} {REDACTED}"


def test_a_key_that_may_be_the_name_of_something_is_hidden_as_its_value_only() -> None:
    assert note("key", "weight") and redact("state['weight']") == "state['weight']"
    assert note("key", "x9-weight-3") and "x9" not in redact("x9-weight-3")
    assert note("api_key", "weighty") and "weighty" not in redact("'weighty'")


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "value-of-the-token")
    assert redact("login with value-of-the-token") == f"login with {REDACTED}"
    monkeypatch.setenv("SOME_TOKEN", "another-value-of-it")
    assert redact("login with another-value-of-it") == f"login with {REDACTED}"
    assert note("DATA", "/home/me", of_environment=True)
    assert "/home/me'" not in redact("'/home/me'") and redact("/home/me/train.py") == "/home/me/train.py"


def test_findings_and_messages() -> None:
    note("token", "abcdefgh")
    place = Location("/abcdefgh/train.py", Range(Position(0, 0), Position(0, 0)))
    found = Finding("MP201", "was abcdefgh", place, hint="not abcdefgh", values=(Value("t", "'abcdefgh'"),))
    assert "abcdefgh" not in found.message + found.hint + found.values[0].repr
    message = redact_json({"type": "finding", "finding": {"file": "/abcdefgh", "path": [{"function": "abcdefgh"}], "n": 1}})
    assert message["finding"] == {"file": "/abcdefgh", "path": [{"function": REDACTED}], "n": 1}


def test_the_shells_working_directory_is_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/home/someone/project")
    monkeypatch.setenv("OLDPWD", "/home/someone/elsewhere")
    monkeypatch.setenv("DB_PWD", "hunter-two-three")
    text = "/home/someone/project/train.py:3 and /home/someone/elsewhere, hunter-two-three"
    assert redact(text) == f"/home/someone/project/train.py:3 and /home/someone/elsewhere, {REDACTED}"
