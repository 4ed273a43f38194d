"""`sign_in` in ork.yaml: the provider that people sign in with, and which role each of them gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ork.model.access import Role
from ork.model.record import Record

SCOPES = ("openid", "email", "profile")
GROUPS_CLAIM = "groups"
SESSION_SECONDS = 12 * 3600.0
LEAST_SESSION_SECONDS = 300.0
# Highest first: of several roles, a person gets the first one.
ROLES = (Role.ADMIN, Role.OPERATOR, Role.VIEWER)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LONGEST = 200  # characters of a name


class RoleRule(Record):
    """Who gets a role: members of a group, single people (by verified e-mail address or subject), and everybody with a
    verified e-mail address of a domain."""

    role: Role
    groups: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()


class OidcConfig(Record):
    """`client_secret` is the name of a secret; None for a public client. `roles` are ordered, highest first."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    label: str = ""
    scopes: tuple[str, ...] = SCOPES
    groups_claim: str = GROUPS_CLAIM
    roles: tuple[RoleRule, ...] = ()
    default_role: Role | None = None
    allowed_domains: frozenset[str] = frozenset()
    session_seconds: float = SESSION_SECONDS

    @property
    def name(self) -> str:
        """How people call the provider."""
        return self.label or urlsplit(self.issuer).hostname or self.issuer


class Person(Record):
    """Who somebody is, as the provider says. `email` is None unless the provider has verified it."""

    subject: str
    name: str
    email: str | None = None
    groups: tuple[str, ...] = ()

    @property
    def domain(self) -> str | None:
        return self.email.rpartition("@")[2] if self.email else None


def issuer_mistake(text: str) -> str | None:
    """Why this is not the address of a provider; None if it is one."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is not a URL"
    if not host or not text.isprintable() or " " in text or parts.query or parts.fragment or parts.username:
        return "it is not a URL of a host and a path"
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        return "it must begin with https://"
    return None


def person_of(claims: Mapping[str, Any], groups_claim: str) -> Person:
    """The person that verified claims describe. Only `sub` is sure to be there."""
    subject, email = str(claims["sub"]), claims.get("email")
    verified = email.lower() if isinstance(email, str) and "@" in email and _is_verified(claims) else None
    return Person(subject, _name(claims, subject, verified), verified, groups_in(claims, groups_claim) or ())


def groups_in(claims: Mapping[str, Any], claim: str) -> tuple[str, ...] | None:
    """The groups of this claim, which may be a path such as `realm_access.roles`; None if there is no such claim."""
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return (found,)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else None


def role_of(person: Person, config: OidcConfig) -> Role | None:
    """The highest role that a rule gives; None if the person may not sign in."""
    if config.allowed_domains and person.domain not in config.allowed_domains:
        return None
    given = [rule.role for rule in config.roles if _is_meant(person, rule)]
    given += [] if config.default_role is None else [config.default_role]
    return min(given, key=ROLES.index, default=None)


def _is_meant(person: Person, rule: RoleRule) -> bool:
    is_named = person.subject in rule.users or (person.email is not None and person.email in rule.users)
    return is_named or person.domain in rule.domains or not rule.groups.isdisjoint(person.groups)


def _is_verified(claims: Mapping[str, Any]) -> bool:
    return claims.get("email_verified") in (True, "true")


def _name(claims: Mapping[str, Any], subject: str, email: str | None) -> str:
    """A verified address is unique. What people can choose themselves is not, so the subject stands beside it."""
    if email is not None:
        return _shown([email])
    chosen = next((claims[key] for key in ("preferred_username", "email", "name") if _is_text(claims.get(key))), None)
    return _shown([f"{_shown([str(chosen)], _LONGEST // 2)} ({subject})" if chosen else subject])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _shown(texts: Iterable[str], most: int = _LONGEST) -> str:
    return _UNPRINTABLE.sub("", " ".join(texts))[:most]
