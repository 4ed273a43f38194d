"""A platform that signs identity tokens, as Google does: RS256, with certificates at a URL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from google.auth import crypt, jwt

ISSUER = "https://accounts.google.com"


class Signer:
    """One key of the platform."""

    def __init__(self, id: str = "key-1") -> None:
        self.id = id
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        self._signer = crypt.RSASigner.from_string(private, id)

    def certificate(self) -> str:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "federated-signon.system.gserviceaccount.com")])
        begin = datetime(2020, 1, 1, tzinfo=UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(1)
            .not_valid_before(begin)
            .not_valid_after(begin + timedelta(days=36500))
            .sign(self._key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def token(self, audience: str, email: str, now: datetime, **claims: Any) -> str:
        seconds = int(now.timestamp())
        payload = {
            "iss": ISSUER,
            "aud": audience,
            "email": email,
            "email_verified": True,
            "sub": "1",
            "iat": seconds,
            "exp": seconds + 3600,
            **claims,
        }
        signed: bytes = jwt.encode(self._signer, {k: v for k, v in payload.items() if v is not None})
        return signed.decode()
