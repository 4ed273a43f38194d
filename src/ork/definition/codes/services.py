"""8xx: the store and the services."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK800",
        "something went wrong inside Ork",
        "An error without a code of its own. Set ORK_DEBUG=1 to see where it comes from.",
    ),
    Explanation(
        "ORK801",
        "wrong use",
        "The command or call makes no sense as given. The message says why.",
        right="ork COMMAND --help",
    ),
    Explanation(
        "ORK802",
        "not found",
        "There is no such run, task, workflow, file or code. Ids may be shortened as long as they stay unique; `@last`\n"
        "is the last run.",
        right="ork runs",
    ),
    Explanation(
        "ORK803",
        "refused",
        "The request was understood and cannot be granted now: the run has ended, something else holds it, or it is not\n"
        "allowed.",
        right="ork show RUN",
    ),
    Explanation(
        "ORK810",
        "the state store cannot do it",
        "The disk may be full, the file may not be writable, or it was made by a newer Ork.",
        right="ork db status\nork doctor",
    ),
    Explanation(
        "ORK811",
        "the state store is not available now",
        "Another process holds it for longer than it should, or it cannot be reached. Trying again later may work.",
        right="ork doctor",
    ),
    Explanation(
        "ORK820",
        "the object store cannot do it",
        "The disk may be full or the folder not writable.",
        right="ork doctor",
    ),
    Explanation(
        "ORK821",
        "a document that cannot be trusted",
        "A document from outside is malformed, too large, or not signed by the attempt it claims to come from. It is\n"
        "ignored, and only that attempt suffers.",
    ),
    Explanation(
        "ORK890",
        "an event the state machine does not know",
        "A bug in Ork: something happened to a run or a task in a state in which it cannot happen. The run is set aside\n"
        "so that others go on.",
    ),
    Explanation(
        "ORK899",
        "a bug in Ork",
        "An error nobody foresaw. Set ORK_DEBUG=1 to see where it comes from, and please report it.",
        right="ORK_DEBUG=1 ork COMMAND",
    ),
)
