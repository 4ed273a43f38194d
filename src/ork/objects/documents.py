"""Documents between scheduler and worker: JSON objects, signed with the attempt's token.

The token is derived from the store's signing key, so the next scheduler can derive it again; checking a
document needs only the token's hash, which the state store contains. Imports are minimal, because every start of a
worker loads this module.
"""

from __future__ import annotations

from _operator import _compare_digest

from ork.errors import DocumentError
from ork.model.digest import sha256
from ork.objects.json_text import MAX_DEPTH, dumps, own_json, strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


__all__ = ["MAX_DEPTH", "DocumentError", "derive_token", "open_signed", "sign", "strict_json", "token_hash"]

DOCUMENT_LIMIT = 1 << 20  # gate, status and stop
SPEC_LIMIT = 64 << 20

_second = 0, "1970-01-01T00:00:00"
_SHA256_BLOCK = 64
END_BYTES = len(',"signature":""}') + 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


def derive_token(signing_key: bytes, attempt: str) -> str:
    return token_maker(signing_key)(attempt)


def token_maker(signing_key: bytes) -> Callable[[str], str]:
    """Returns a function that derives tokens; the key's part of the hash is computed once."""
    key = _key_block(signing_key)
    inner, outer = sha256(key.translate(_INNER) + b"attempt:"), sha256(key.translate(_OUTER))

    def derive(attempt: str) -> str:
        first, second = inner.copy(), outer.copy()
        first.update(attempt.encode())
        second.update(first.digest())
        return str(second.hexdigest())

    return derive


def group_key(signing_key: bytes, group: str) -> bytes:
    """The key of a launch group. `token_maker` makes the tokens of its attempts from it: who holds it can make those, and
    no others."""
    return _hmac_sha256(signing_key, b"group:" + group.encode())


def token_hash(token: str) -> str:
    return str(sha256(token.encode()).hexdigest())


def wake_proof(attempt: str, token_hash: str) -> str:
    """What a worker shows to wake a control plane: only a holder of the attempt's token (or its hash) can make it."""
    return _hmac_sha256(token_hash.encode(), b"wake:" + attempt.encode()).hex()


def objects_proof(attempt: str, token_hash: str) -> str:
    """What a worker shows to a server that keeps its documents. Nobody can make a signature of it."""
    return _hmac_sha256(token_hash.encode(), b"objects:" + attempt.encode()).hex()


def installation_mark(signing_key: bytes) -> str:
    """The same for all who use one state store. Tells nothing of the key."""
    return _hmac_sha256(signing_key, b"installation").hex()[:16]


def entries(document: dict[str, Any]) -> bytes:
    """JSON text of entries that many documents share, for `sign`. There must be at least one."""
    return dumps(document)[1:-1].encode()


def sign(document: dict[str, Any], token_hash: str, more: bytes = b"") -> bytes:
    """The document as bytes, with a signature that only a holder of the token (or its hash) can make. It has at least one
    entry of its own where there are `more` (see `entries`)."""
    if "signature" in document:
        document = {name: value for name, value in document.items() if name != "signature"}
    unsigned = dumps(document).encode()
    if more:
        return seal(b"%b,%b" % (unsigned[:-1], more), token_hash)
    if len(unsigned) > len(b"{}"):
        return seal(unsigned[:-1], token_hash)
    return b"{" + _end(_signature(unsigned, token_hash))[1:]


def seal(text: bytes, token_hash: str) -> bytes:
    """The same for a document that is there as text, but for its last brace; it has at least one entry."""
    return text + _end(_signature(text + b"}", token_hash))


class Signer:
    """Signs the documents of one attempt; the token's part of the hash is computed once."""

    __slots__ = ("_inner", "_outer", "token_hash")

    def __init__(self, token_hash: str) -> None:
        self.token_hash = token_hash
        key = bytes.fromhex(token_hash).ljust(_SHA256_BLOCK, b"\0")
        self._inner, self._outer = sha256(key.translate(_INNER)), sha256(key.translate(_OUTER))

    def sign(self, text: str) -> bytes:
        """As the function does, for a document of at least one entry that `dumps` has put into words, or would have so."""
        unsigned = text.encode()
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(unsigned)
        outer.update(inner.digest())
        return b'%b,"signature":"%b"}' % (unsigned[:-1], outer.hexdigest().encode())


def open_signed(data: bytes, token_hash: str, *, limit: int = DOCUMENT_LIMIT) -> dict[str, Any]:
    """The document, if it is whole, an object, and signed with this token; otherwise DocumentError."""
    document = strict_json(data, max_size=limit, max_depth=MAX_DEPTH + 8)
    if not isinstance(document, dict):
        raise DocumentError("not a JSON object")
    signature = document.pop("signature", None)
    if not isinstance(signature, str) or not signature.isascii():
        raise DocumentError("not signed")
    if not _compare_digest(signature, _signature(_unsigned_text(data, document, signature), token_hash)):
        raise DocumentError("the signature does not fit: not written by this attempt")
    return document


def is_sealed(data: bytes, token_hash: str) -> bool:
    """Whether it ends as `sign` ends a document of more than one entry, and its signature fits. The caller must
    know that it is a document."""
    begin = len(data) - END_BYTES
    end = _end(_signature(data[:begin] + b"}", token_hash))
    return len(data) <= DOCUMENT_LIMIT and _compare_digest(data[begin:], end)


def expect_many() -> None:
    """Load OpenSSL, for a process with many documents: loading takes milliseconds and megabytes, hashing is then several
    times faster."""
    global sha256
    from hashlib import sha256


def utc_text(nanoseconds: int) -> str:
    """RFC 3339 in UTC with microseconds, from nanoseconds since 1970 (as `time.time_ns` gives)."""
    global _second
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    if _second[0] != seconds:  # else it is as it was a moment ago
        from time import gmtime, strftime

        _second = seconds, strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
    return "%s.%06dZ" % (_second[1], rest // 1000)  # noqa: UP031 - in two thirds of the time


def _unsigned_text(data: bytes, document: dict[str, Any], signature: str) -> bytes:
    """The text that was signed. If the signature is at the end, as `sign` writes it, that is the rest of the text; other
    documents have to be encoded again. (A quote inside a string is escaped, so in valid JSON
    nothing but the outermost object's last entry can look like that end.)"""
    end = _end(signature)
    return data[: -len(end)] + b"}" if data.endswith(end) else dumps(document).encode()


def _end(signature: str) -> bytes:
    return f',"signature":"{signature}"}}'.encode()


def _signature(text: bytes, token_hash: str) -> str:
    """As `_hmac_sha256` makes it, with a call less for each step: it is made for every document."""
    key = bytes.fromhex(token_hash).ljust(_SHA256_BLOCK, b"\0")
    return str(sha256(key.translate(_OUTER) + sha256(key.translate(_INNER) + text).digest()).hexdigest())


def _key_block(key: bytes) -> bytes:
    return bytes(sha256(key).digest() if len(key) > _SHA256_BLOCK else key).ljust(_SHA256_BLOCK, b"\0")


def _hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104 by hand: `hmac` and `hashlib` load OpenSSL, which costs a third of a worker's start."""
    key = _key_block(key)
    inner = sha256(key.translate(_INNER) + message).digest()
    return bytes(sha256(key.translate(_OUTER) + inner).digest())


_OWN = b'{"own":'
_alike: tuple[bytes, dict[str, Any] | None, list[str]] = b"", {}, []  # as text, as read, and what is empty in it


def joined(own: bytes, alike: bytes) -> bytes:
    """As text for `documents.seal`; both are entries."""
    return b"%b%d,%b,%b" % (_OWN, len(own), own, alike)


def read_sent(document: bytes) -> dict[str, Any]:
    """Decode a spec that came directly from its scheduler, so that it needs no signature. Returns objects that no other spec
    shares."""
    if not document.startswith(_OWN):
        return own_json(document)  # type: ignore[no-any-return]
    begin = document.index(b",") + 1
    end = begin + int(document[len(_OWN) : begin - 1])
    text = document[end + 1 : -END_BYTES]
    if text != _alike[0]:
        _learn(text)
    _, known, empty = _alike
    if known is None:
        return own_json(document)  # type: ignore[no-any-return]
    spec = known.copy()
    for name in empty:
        spec[name] = {}
    spec.update(own_json(b"{%b}" % document[begin:end]))
    return spec


def _learn(text: bytes) -> None:
    """Remember the shared rest. Values that the caller could modify are decoded again each time."""
    global _alike
    known = own_json(b"{%b}" % text)
    made_of_more = [name for name, value in known.items() if isinstance(value, (dict, list))]
    is_simple = all(known[name] == {} for name in made_of_more)
    _alike = text, known if is_simple else None, made_of_more
