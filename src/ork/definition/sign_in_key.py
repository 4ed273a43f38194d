"""`sign_in` in ork.yaml: single sign-on through an OpenID Connect provider, and the roles that people get."""

from __future__ import annotations

from typing import Any

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.values import duration, entries_of, items_of, read_name, read_text
from ork.model.access import Role
from ork.model.sign_in import LEAST_SESSION_SECONDS, ROLES, SESSION_SECONDS, OidcConfig, RoleRule, issuer_mistake

_NAMES = [role.value for role in ROLES]
_EXAMPLE = "`roles: {admin: {groups: [platform]}, viewer: {domains: [example.com]}}`"
_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _read_issuer(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    mistake = None if text is None else issuer_mistake(text)
    if mistake is not None:
        hint = "the `issuer` of the provider's /.well-known/openid-configuration, such as https://accounts.google.com"
        reading.refuse("ORK104", f"{quoted(text or '')} cannot be an issuer: {mistake}", node, hint=hint)
        return None
    return text


def _read_secret(node: Node, reading: Reading) -> str | None:
    """`{secret: NAME}`. The value itself is refused: ork.yaml is read by many."""
    named = node.get("secret") if node.kind == Kind.MAP else None
    if named is None:
        hint = "write `client_secret: {secret: ORK_OIDC_CLIENT_SECRET}`, and set that variable where `ork serve` runs"
        reading.expected("a secret's name", node, hint=hint)
        return None
    return read_name(named, reading)


def _read_role(node: Node, reading: Reading) -> Role | None:
    text = read_text(node, reading)
    if text is None:
        return None
    if text not in _NAMES:
        reading.refuse("ORK104", f"{quoted(text)} is not a role of people", node, hint=f"one of: {', '.join(_NAMES)}")
        return None
    return Role(text)


def _lower(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    return None if text is None else text.lower()


def _read_domain(node: Node, reading: Reading) -> str | None:
    text = _lower(node, reading)
    if text is not None and ("@" in text or "*" in text or "." not in text.strip(".")):
        reading.refuse("ORK104", f"{quoted(text)} is not a domain", node, hint="write `example.com`, without @ or *")
        return None
    return text


def _read_user(node: Node, reading: Reading) -> str | None:
    """An e-mail address, whose case does not matter, or a subject."""
    text = read_text(node, reading)
    return text.lower() if text is not None and "@" in text else text


def _read_scope(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and (not text.isascii() or not text.isprintable() or set(text) & set(' "\\') or not text):
        reading.refuse("ORK104", f"{quoted(text)} is not a scope", node, hint="such as `openid` or `groups`")
        return None
    return text


def _read_session(node: Node, reading: Reading) -> float | None:
    seconds = duration(zero_allowed=False)(node, reading)
    if seconds is not None and not LEAST_SESSION_SECONDS <= seconds <= SESSION_SECONDS:
        reading.refuse("ORK104", f"{quoted(str(node.value))} is not between 5m and 12h", node)
        return None
    return seconds  # type: ignore[no-any-return]


ROLE_TABLE = KeyTable(
    "a role",
    (
        Key("groups", items_of(read_text), "Members of one of these groups.", _TEXTS),
        Key("users", items_of(_read_user), "These people, by verified e-mail address or by subject (`sub`).", _TEXTS),
        Key("domains", items_of(_read_domain), "Everybody with a verified e-mail address of these domains.", _TEXTS),
    ),
)


def _read_roles(node: Node, reading: Reading) -> tuple[RoleRule, ...] | None:
    pairs = entries_of(_read_role, ROLE_TABLE.read)(node, reading)
    if pairs is None:
        return None
    rules = [RoleRule(role, **{name: frozenset(given) for name, given in values.items()}) for role, values in pairs]
    return tuple(sorted(rules, key=lambda rule: ROLES.index(rule.role)))


OIDC_TABLE = KeyTable(
    "a provider",
    (
        Key("issuer", _read_issuer, "The provider's issuer, as its discovery document names it.", {"type": "string"}, required=True),
        Key("client_id", read_text, "The id under which Ork is registered at the provider.", {"type": "string"}, required=True),
        Key(
            "client_secret",
            _read_secret,
            "The client's secret, as `{secret: NAME}`. Default: none, for a public client.",
            {"type": "object", "properties": {"secret": {"type": "string"}}, "required": ["secret"], "additionalProperties": False},
        ),
        Key("label", read_text, "The provider's name on the button. Default: the issuer's host.", {"type": "string"}),
        Key("scopes", items_of(_read_scope), "What to ask the provider for. Default: openid, email, profile.", _TEXTS),
        Key(
            "groups_claim",
            read_text,
            "The claim with a person's groups, or a path to it, such as `realm_access.roles`. Default: `groups`.",
            {"type": "string"},
        ),
        Key(
            "roles",
            _read_roles,
            "Who gets which role: `groups`, `users` and `domains` for admin, operator and viewer. The highest counts.",
            {"type": "object", "propertyNames": {"enum": _NAMES}, "additionalProperties": {"$ref": "#/$defs/role"}},
        ),
        Key(
            "default_role",
            _read_role,
            "The role of everybody else whom the provider signs in. Default: none, they may not sign in.",
            {"enum": _NAMES},
        ),
        Key(
            "allowed_domains",
            items_of(_read_domain),
            "Only people with a verified e-mail address of these domains may sign in, whatever their groups.",
            _TEXTS,
        ),
        Key(
            "session",
            _read_session,
            "How long a session lasts, from 5m to 12h. Default: 12h.",
            {"type": ["number", "string"]},
        ),
    ),
)  # fmt: skip


def _read_oidc(node: Node, reading: Reading) -> OidcConfig | None:
    """None after any mistake: a restriction that was not understood must not be left out."""
    before = len(reading.report.problems())
    values = OIDC_TABLE.read(node, reading)
    if values is None or len(reading.report.problems()) > before:
        return None
    missing = OIDC_TABLE.missing(node)
    for name in missing:
        reading.refuse("ORK102", f"{OIDC_TABLE.what} needs `{name}`", node)
    if missing or not {"issuer", "client_id"} <= values.keys():
        return None
    if not any(values.get(key) for key in ("roles", "default_role")):
        reading.refuse("ORK102", "nobody gets a role, so nobody could sign in", node, hint=_EXAMPLE)
        return None
    return OidcConfig(**_fields(values))


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in values.items() if name != "session"}
    if "session" in values:
        fields["session_seconds"] = values["session"]
    if "allowed_domains" in values:
        fields["allowed_domains"] = frozenset(values["allowed_domains"])
    if "scopes" in values:
        fields["scopes"] = tuple(dict.fromkeys(("openid", *values["scopes"])))
    return fields


SIGN_IN_TABLE = KeyTable(
    "`sign_in`",
    (Key("oidc", _read_oidc, "A provider of OpenID Connect.", {"$ref": "#/$defs/oidc"}, required=True),),
)


def read_sign_in(node: Node, reading: Reading) -> OidcConfig | None:
    values = SIGN_IN_TABLE.read(node, reading)
    if values is None:
        return None
    if SIGN_IN_TABLE.missing(node):
        reading.refuse("ORK102", "`sign_in` needs `oidc`", node, hint="`sign_in: {oidc: {issuer: …, client_id: …}}`")
    found: OidcConfig | None = values.get("oidc")
    return found
