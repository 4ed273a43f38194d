"""`sign_in` and `ui` in ork.yaml: what is accepted, and that nothing half understood lets anybody in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.definition.project_file import load_project
from ork.model.access import Role
from ork.model.publishing import PublishConfig
from ork.model.sign_in import OidcConfig, RoleRule

EXAMPLE = Path(__file__).parents[3] / "examples" / "single_sign_on"
GOOD = "issuer: https://id.example, client_id: ork, default_role: viewer"


def mistakes(text: str) -> list[str]:
    project, problems = load_project(text.encode())
    assert project.sign_in is None or problems == () or not text.startswith("sign_in")
    return [f"{each.code} {each.message}" for each in problems]


def test_the_example_is_read() -> None:
    project, problems = load_project((EXAMPLE / "ork.yaml").read_bytes())
    assert problems == ()
    assert project.sign_in == OidcConfig(
        "http://127.0.0.1:5556/dex", "ork", "ORK_OIDC_CLIENT_SECRET", "Dex",
        ("openid", "email", "profile", "groups"),
        roles=(
            RoleRule(Role.ADMIN, groups=frozenset({"authors"})),
            RoleRule(Role.VIEWER, domains=frozenset({"example.com"})),
        ),
    )  # fmt: skip
    assert project.sign_in is not None
    assert project.sign_in.name == "Dex"


def test_addresses_are_compared_without_case_and_openid_is_always_asked_for() -> None:
    text = "sign_in: {oidc: {issuer: https://id.example, client_id: x, scopes: groups, session: 8h, roles: {viewer: {users: [Ada@Example.com, Sub-7]}}}}"
    project, problems = load_project(text.encode())
    assert problems == ()
    assert project.sign_in is not None
    assert project.sign_in.scopes == ("openid", "groups")
    assert project.sign_in.roles[0].users == {"ada@example.com", "Sub-7"}
    assert (project.sign_in.session_seconds, project.sign_in.name) == (28_800.0, "id.example")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sign_in: {}", "ORK102 `sign_in` needs `oidc`"),
        ("sign_in: {saml: {}}", "ORK101 `saml` is not a key of `sign_in`"),
        ("sign_in: {oidc: {client_id: x, default_role: viewer}}", "ORK102 a provider needs `issuer`"),
        ("sign_in: {oidc: {issuer: https://id.example, client_id: x}}", "ORK102 nobody gets a role, so nobody could sign in"),
        ("sign_in: {oidc: {issuer: http://id.example, client_id: x, default_role: viewer}}", "ORK104 `http://id.example` cannot be an issuer: it must begin with https://"),
        ("sign_in: {oidc: {issuer: 'https://id.example/?a=b', client_id: x, default_role: viewer}}", "ORK104 `https://id.example/?a=b` cannot be an issuer: it is not a URL of a host and a path"),
        (f"sign_in: {{oidc: {{{GOOD}, client_secret: hunter2}}}}", "ORK103 expected a secret's name, found `hunter2`"),
        (f"sign_in: {{oidc: {{{GOOD}, session: 13h}}}}", "ORK104 `13h` is not between 5m and 12h"),
        (f"sign_in: {{oidc: {{{GOOD}, allowed_domains: ['*.example.com']}}}}", "ORK104 `*.example.com` is not a domain"),
        (f"sign_in: {{oidc: {{{GOOD}, roles: {{scheduler: {{groups: a}}}}}}}}", "ORK104 `scheduler` is not a role of people"),
        (f"sign_in: {{oidc: {{{GOOD}, roles: {{admin: {{group: a}}}}}}}}", "ORK101 `group` is not a key of a role"),
        ("ui: {publish: ftp://x/y}", "ORK104 `ftp://x/y` is not a place to publish to"),
        ("ui: {publish: out.html}", "ORK104 `out.html` is not a place to publish to"),
        ("ui: {publish: {runs: 5}}", "ORK102 `publish` needs `to`"),
        ("ui: {publish: {to: x, every: 1s}}", "ORK104 `1s` is less than 5 seconds"),
        ("ui: {publish: {to: x, logs: some}}", "ORK104 `some` is not one of all, failed, none"),
    ],
)  # fmt: skip
def test_mistakes_are_named(text: str, message: str) -> None:
    assert message in mistakes(text)


def test_a_place_to_publish_to() -> None:
    for text, wanted in (
        ("ui: {publish: s3://b/ork}", PublishConfig("s3://b/ork")),
        (
            "ui: {publish: {to: out, runs: 5, since: 7d, logs: none, every: 5m, public: true}}",
            PublishConfig("out", 5, 604_800.0, "none", 300.0, True),
        ),
        ("ui: {}", None),
    ):
        project, problems = load_project(text.encode())
        assert (project.ui, problems) == (wanted, ())
