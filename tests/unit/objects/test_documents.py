from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.errors import DocumentError
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.objects import layout
from ork.objects.documents import Signer, _hmac_sha256, derive_token, entries, open_signed, sign, token_hash, utc_text
from ork.objects.json_text import dumps

TOKEN = derive_token(b"key", "run/task/0/1")
HASH = token_hash(TOKEN)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_signatures_are_the_standard_ones(key: bytes, message: bytes) -> None:
    assert _hmac_sha256(key, message) == hmac.digest(key, message, "sha256")


def test_tokens_differ_by_attempt_and_key_and_can_be_made_again() -> None:
    assert derive_token(b"key", "run/task/0/1") == TOKEN
    assert len({TOKEN, derive_token(b"key", "run/task/0/2"), derive_token(b"other", "run/task/0/1")}) == 3
    assert hashlib.sha256(TOKEN.encode()).hexdigest() == HASH


def test_a_signed_document_opens_to_what_was_signed() -> None:
    document = {"v": 1, "attempt": "run/task/0/1", "seq": 3, "at": None, "detail": {"x": [1.5, "é"]}}
    assert open_signed(sign(document, HASH), HASH) == document


def test_what_many_documents_say_alike_is_signed_as_if_each_said_it_itself() -> None:
    own, same = {"v": 1, "item": {"x": ","}}, {"params": {"a": "}"}, "round": 2}
    assert sign(own, HASH, entries(same)) == sign(own | same, HASH)


def test_who_signs_more_than_once_signs_alike() -> None:
    signer = Signer(HASH)
    for document in ({"v": 1, "attempt": "run/é/0/1"}, {"v": 1, "output": {"inline": "x" * 200}}):
        assert signer.sign(dumps(document)) == sign(document, HASH)


def test_signing_again_gives_the_same_bytes() -> None:
    assert sign({"b": 1, "a": 2}, HASH) == sign({"signature": "old", "b": 1, "a": 2}, HASH)


def test_the_signature_stands_where_the_documents_author_put_it() -> None:
    signature = json.loads(sign({"v": 1, "seq": 2}, HASH))["signature"]
    assert (
        sign({"v": 1, "seq": 2}, HASH)
        == json.dumps({"v": 1, "seq": 2, "signature": signature}, separators=(",", ":")).encode()
    )
    for written_otherwise in ({"signature": signature, "v": 1, "seq": 2}, {"v": 1, "signature": signature, "seq": 2}):
        assert open_signed(json.dumps(written_otherwise).encode(), HASH) == {"v": 1, "seq": 2}
    assert open_signed(sign({}, HASH), HASH) == {}


def test_a_value_that_ends_like_a_signature_is_not_taken_for_one() -> None:
    forged = sign({"v": 1}, HASH)[:-1] + b',"x":{"a":1,"signature":"' + b"0" * 64 + b'"}}'
    with pytest.raises(DocumentError, match="signature"):
        open_signed(forged, HASH)


def test_what_a_task_is_given_keeps_the_order_it_was_returned_in() -> None:
    opened = open_signed(sign({"upstream": {"zeta": 1, "alpha": 2}}, HASH), HASH)
    assert list(opened["upstream"]) == ["zeta", "alpha"]


@given(st.integers(0, 500), st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(place: int, change: int) -> None:
    document = {"v": 1, "attempt": "run/task/0/1", "seq": 3, "state": "success"}
    data = bytearray(sign(document, HASH))
    data[place % len(data)] ^= change
    try:
        opened = open_signed(bytes(data), HASH)
    except DocumentError:
        return
    assert opened == document  # e.g. a hexadecimal letter of an escape in upper case: the same document


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"signature":1}', b'{"signature":"\xc3\xa9"}', b'{"v":1'])
def test_what_is_not_signed_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError):
        open_signed(data, HASH)


def test_another_attempts_document_is_refused() -> None:
    other = token_hash(derive_token(b"key", "run/task/0/2"))
    with pytest.raises(DocumentError, match="signature"):
        open_signed(sign({"v": 1}, other), HASH)


def test_times_are_rfc_3339_with_microseconds() -> None:
    assert utc_text(1_767_225_600_123_456_789) == "2026-01-01T00:00:00.123456Z"
    assert utc_text(0) == "1970-01-01T00:00:00.000000Z"


def test_keys_of_an_attempt_begin_alike() -> None:
    folder = layout.attempt_stem(AttemptKey(RunId("r1"), TaskKey("load", 3), 2))
    assert folder == "runs/r1/load.3.2"
    assert layout.stem_of(layout.spec_key(folder)) == folder
    keys = {
        make(folder)
        for make in (
            layout.spec_key,
            layout.gate_key,
            layout.status_key,
            layout.output_key,
            layout.stop_key,
            layout.log_key,
        )
    }
    assert len(keys) == 6
    assert all(key.startswith(folder + ".") for key in keys)
    assert folder.startswith(layout.run_folder(RunId("r1")) + "/")
