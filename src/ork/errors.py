"""Every error Ork raises on purpose.

OrkError                        carries a stable code and a hint
├── DefinitionError             what was written is wrong; holds Problems with places        exit 2
├── UsageError                  the command or call makes no sense as given                  exit 2
├── NotFoundError               no such run, task, workflow or file                          exit 3
├── RefusedError                understood, but not now: conflict, too late, not allowed     exit 4
├── StoreError                  the state store cannot do it (disk full, locked, too new)    exit 1
│   ├── StoreUnavailableError   it may work again later: try again                           exit 1
│   └── SettingsDifferError     this process and the installation do not fit together        exit 1
├── UnreadableError             one stored item cannot be decoded; the store works           exit 1
├── ObjectsError                the object store cannot do it                                exit 1
│   ├── DocumentError           a document from outside is malformed, forged or too large
│   └── RunDocumentsError       what holds all documents of a run is damaged for good
├── ExecutorError               an attempt could not be started, found or stopped
│   └── EngineError             the container engine refused
│       ├── EngineUnreachableError  no connection: the request was not sent
│       └── AnswerLostError     it was asked, and may or may not have done it
├── AlarmError                  the alarm that calls ticks cannot be set or read
├── SecretError                 a secret has no value
│   ├── UndeclaredSecretError   the project does not give it to that workflow
│   └── SecretNotYetError       its command still runs, or failed: it may work later
└── IllegalTransitionError      the state machine was fed an event its table does not know
"""

from __future__ import annotations


class OrkError(Exception):
    """A sentence for a person, a stable code for a program, and a hint what to do next."""

    code = "ORK800"

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code


class DefinitionError(OrkError):
    """Holds every problem found, not only the first (see `ork.definition.problems.Problem`)."""

    code = "ORK100"

    def __init__(self, message: str, problems: tuple[object, ...] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


class UsageError(OrkError):
    code = "ORK801"


class NotFoundError(OrkError):
    code = "ORK802"


class RefusedError(OrkError):
    code = "ORK803"


class StoreError(OrkError):
    code = "ORK810"


class StoreUnavailableError(StoreError):
    code = "ORK811"


class UnreadableError(OrkError):
    code = "ORK813"


class SettingsDifferError(StoreError):
    code = "ORK812"


class ObjectsError(OrkError):
    code = "ORK820"


class ObjectsRefusedError(ObjectsError):
    """The object store does not accept who asks: to ask again does not help."""


class DocumentError(ObjectsError):
    code = "ORK821"


class RunDocumentsError(ObjectsError):
    code = "ORK822"


class ExecutorError(OrkError):
    code = "ORK610"


class EngineError(ExecutorError):
    """`status` is that of its answer; 0 where there was none."""

    code = "ORK611"

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class EngineUnreachableError(EngineError):
    code = "ORK612"


class AnswerLostError(EngineError):
    pass


class AlarmError(OrkError):
    code = "ORK850"


class SecretError(OrkError):
    code = "ORK842"


class UndeclaredSecretError(SecretError):
    code = "ORK211"


class SecretNotYetError(SecretError):
    pass


class IllegalTransitionError(OrkError):
    code = "ORK890"

    def __init__(self, subject: str, state: str, event: str) -> None:
        super().__init__(f"{subject}: {event} is not allowed in state {state}")
