"""What Firestore's errors mean to a person, and to a commit that may be tried again. Nothing of the library leaves this folder."""

from __future__ import annotations

from google.api_core import exceptions as google
from google.auth.exceptions import GoogleAuthError

from ork.errors import StoreError, StoreUnavailableError

TROUBLE = (google.GoogleAPICallError, google.RetryError, GoogleAuthError, OSError, TimeoutError)

_TRY_AGAIN = "Try again; work goes on by itself when the database answers."
# A precondition did not hold. The answer never says which one: look again.
_CONFLICTS = (google.FailedPrecondition, google.NotFound, google.AlreadyExists, google.Aborted)
# The request may or may not have been carried out.
_AMBIGUOUS = (
    google.ServiceUnavailable, google.DeadlineExceeded, google.InternalServerError, google.Unknown, google.Cancelled,
    google.TooManyRequests, google.RetryError,
)  # fmt: skip


class ConflictError(Exception):
    """Somebody else changed one of the documents first. Nothing was written."""


class UnansweredError(Exception):
    """A commit had no answer: it was carried out, or will be, or not."""


def commit_error(error: BaseException) -> BaseException:
    """The two that a commit is tried again after; others as they are."""
    if isinstance(error, google.NotFound) and "database" in str(error).lower() and "does not exist" in str(error):
        return error
    if isinstance(error, _CONFLICTS):
        return ConflictError(str(error))
    if isinstance(error, (*_AMBIGUOUS, OSError, TimeoutError)):
        return UnansweredError(str(error))
    return error


def passes(error: BaseException) -> bool:
    """A read that failed so is tried again."""
    return isinstance(error, (*_AMBIGUOUS, google.Aborted, OSError))


def store_error(error: BaseException, store: str) -> StoreError:
    if isinstance(error, ConflictError | UnansweredError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return StoreUnavailableError(f"The store {store} did not answer in time.", hint=_TRY_AGAIN)
    if isinstance(error, google.PermissionDenied | google.Forbidden):
        hint = "Give this identity the role roles/datastore.user in the project: ork doctor"
        return StoreError(f"The store {store} does not let us in ({_words(error)}).", hint=hint)
    if isinstance(error, google.Unauthenticated | GoogleAuthError):
        hint = "Log in: gcloud auth application-default login. On Google Cloud, give the service an identity."
        return StoreError(f"The store {store} needs credentials ({_words(error)}).", hint=hint)
    if isinstance(error, google.NotFound):
        hint = "Create it: gcloud firestore databases create --database=NAME --location=REGION"
        return StoreError(f"The store {store} does not exist ({_words(error)}).", hint=hint)
    if isinstance(error, google.FailedPrecondition) and "index" in str(error):
        hint = "Create the indexes: ork db indexes, then gcloud firestore indexes or terraform"
        return StoreError(f"The store {store} lacks an index ({_words(error)}).", hint=hint)
    if isinstance(error, google.InvalidArgument):
        return StoreError(
            f"The store {store} refused a request ({_words(error)}).", hint="See docs/firestore.md, Limits."
        )
    return StoreUnavailableError(f"The store {store} cannot be reached ({_words(error)}).", hint=_TRY_AGAIN)


def _words(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
