"""Alert channels, as defined by `alerts` in ork.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ork.alerts.text import check_template
from ork.errors import UsageError
from ork.model.notice import KINDS, NoticeKind
from ork.model.record import Record
from ork.model.workflow import Secret

Word: TypeAlias = str | Secret

_WAYS = ("webhook", "slack", "mail", "apprise")
_KEYS = frozenset({*_WAYS, "on", "every_workflow", "template"})
_MAIL_KEYS = frozenset({"to", "from", "host", "port", "user", "password", "tls"})
_TLS = ("starttls", "ssl", "none")


class Mail(Record):
    to: tuple[str, ...]
    sender: str
    host: str = "localhost"
    port: int = 25
    user: Word | None = None
    password: Word | None = None
    tls: str = "none"


class Channel(Record):
    """One entry of `alerts`: its target, and the kinds of alerts it receives."""

    name: str
    webhook: Word | None = None
    slack: Word | None = None
    mail: Mail | None = None
    apprise: Word | None = None
    kinds: frozenset[NoticeKind] = KINDS
    every_workflow: bool = False
    template: str | None = None

    @property
    def transport(self) -> str:
        """The way it is sent."""
        return next(transport for transport in _WAYS if getattr(self, transport) is not None)


def read_channels(alerts: Mapping[str, Any]) -> dict[str, Channel]:
    """Channels by name. Raises UsageError for the first mistake."""
    return {
        name: _read(name, {"webhook": given} if isinstance(given, str) else given) for name, given in alerts.items()
    }


def has_global_channel(alerts: Mapping[str, Any]) -> bool:
    """True if a channel receives alerts of every workflow."""
    return any(isinstance(given, dict) and given.get("every_workflow") is True for given in alerts.values())


def recipients(channels: Mapping[str, Channel], named: Iterable[str], kind: NoticeKind) -> list[Channel]:
    """The channels that a workflow names, and those that receive alerts of every workflow, in order."""
    wanted = set(named)
    return [
        channel
        for name, channel in sorted(channels.items())
        if (name in wanted or channel.every_workflow) and kind in channel.kinds
    ]


def secrets_of(channel: Channel) -> list[str]:
    """The names of the secrets needed to reach it."""
    mail = channel.mail
    words = [channel.webhook, channel.slack, channel.apprise, *((mail.user, mail.password) if mail else ())]
    return [word.name for word in words if isinstance(word, Secret)]


def _read(name: str, given: Any) -> Channel:
    where = f"alerts.{name} in ork.yaml"
    if not isinstance(given, dict):
        raise UsageError(f"{where} is not a map", hint=f"`{name}: {{webhook: https://…}}`")
    _refuse_others(where, given, _KEYS)
    mail = given.get("mail")
    channel = Channel(
        name,
        webhook=_word(f"{where}: webhook", given.get("webhook")),
        slack=_word(f"{where}: slack", given.get("slack")),
        mail=None if mail is None else _read_mail(f"{where}: mail", mail),
        apprise=_word(f"{where}: apprise", given.get("apprise")),
        kinds=_kinds(where, given.get("on")),
        every_workflow=given.get("every_workflow") is True,
        template=_template(where, given.get("template")),
    )
    if [getattr(channel, transport) for transport in _WAYS].count(None) != len(_WAYS) - 1:
        raise UsageError(
            f"{where} needs exactly one of {', '.join(_WAYS)}",
            hint="give each a name of its own: one that cannot be reached is tried again, the others are not",
        )
    if channel.apprise is not None:
        _need_apprise(where)
    return channel


def _need_apprise(where: str) -> None:
    from importlib.util import find_spec

    if find_spec("apprise") is None:
        raise UsageError(
            f"{where} needs the package apprise, which is not installed", hint="pip install 'ork-orchestrator[alerts]'"
        )


def _read_mail(where: str, given: Any) -> Mail:
    if not isinstance(given, dict):
        raise UsageError(f"{where} is not a map", hint="`mail: {to: you@example.org, from: ork@example.org}`")
    _refuse_others(where, given, _MAIL_KEYS)
    to = [given["to"]] if isinstance(given.get("to"), str) else given.get("to")
    if not isinstance(to, list) or not to or not all(_is_address(each) for each in to):
        raise UsageError(f"{where}: `to` is not an address or a list of addresses")
    sender = given.get("from", to[0])
    if not _is_address(sender):
        raise UsageError(f"{where}: `from` is not an address")
    tls = given.get("tls", "none")
    if tls not in _TLS:
        raise UsageError(f"{where}: `tls` is none of {', '.join(_TLS)}")
    port = given.get("port", {"ssl": 465, "starttls": 587}.get(tls, 25))
    if not isinstance(port, int) or not 0 < port < 65536:
        raise UsageError(f"{where}: `port` is not a port")
    user, password = _word(f"{where}: user", given.get("user")), _word(f"{where}: password", given.get("password"))
    return Mail(tuple(to), sender, str(given.get("host", "localhost")), port, user, password, tls)


def _refuse_others(where: str, given: dict[str, Any], known: frozenset[str]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{where} has no key `{key}`", hint=f"one of: {', '.join(sorted(known))}")


def _is_address(text: Any) -> bool:
    # A line break would let an address add mail headers.
    return isinstance(text, str) and "@" in text and text.isprintable()


def _word(where: str, given: Any) -> Word | None:
    match given:
        case None:
            return None
        case {"secret": str(name)} if len(given) == 1:
            return Secret(name)
        case str(text):
            return text
    raise UsageError(f"{where} is neither text nor {{secret: NAME}}")


def _kinds(where: str, given: Any) -> frozenset[NoticeKind]:
    if given is None:
        return KINDS
    wanted = [given] if isinstance(given, str) else given
    try:
        kinds = frozenset(NoticeKind(each) for each in wanted)
    except (ValueError, TypeError):
        kinds = frozenset({NoticeKind.TEST})
    if not kinds <= KINDS:
        raise UsageError(f"{where}: `on` may hold {', '.join(kind for kind in NoticeKind if kind in KINDS)}")
    return kinds


def _template(where: str, given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise UsageError(f"{where}: `template` is not text")
    check_template(given, where)
    return given
