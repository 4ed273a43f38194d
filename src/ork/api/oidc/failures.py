"""Why a person could not sign in through the provider, for the page that they see."""

from __future__ import annotations


class SignInFailure(Exception):  # noqa: N818 (an outcome, not a bug)
    """`note` goes into the audit log as a failed sign-in; None: it is nothing suspicious. `by` is the person, if known."""

    def __init__(
        self, status: int, title: str, detail: str, hint: str | None = None, *, note: str | None = None, by: str = ""
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.hint = hint
        self.note = note
        self.by = by


def provider_away(name: str, why: str) -> SignInFailure:
    hint = "Tokens and open sessions work as before. Try again in a moment, or sign in with a token."
    return SignInFailure(503, f"{name} cannot be reached", _sentence(why), hint)


def wrong_answer(why: str) -> SignInFailure:
    """The provider says something that must not be trusted."""
    title = "The provider's answer is not accepted"
    return SignInFailure(
        502, title, _sentence(why), "Begin again. If it happens again, tell an admin of Ork.", note=why
    )


def start_again(why: str, *, is_suspicious: bool = True) -> SignInFailure:
    title, note = "This sign-in cannot be completed", why if is_suspicious else None
    return SignInFailure(400, title, _sentence(why), "Begin again.", note=note)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
