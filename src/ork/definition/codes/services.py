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
        "ORK812",
        "this process does not fit the installation",
        "All schedulers of an installation use one object store and the same limits for lost workers. With another object\n"
        "store an attempt would be started twice. Nothing was done.",
        right="ork db settings",
    ),
    Explanation(
        "ORK813",
        "a stored item cannot be decoded",
        "One row of the store or one stored document is damaged. It is set aside with its reason, and everything else goes\n"
        "on. A damaged version, workflow or schedule is repaired by deploying the workflow again; a run by repairing its row\n"
        "and `ork resume`, or ended by `ork cancel`.",
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
        "ORK822",
        "the documents of a run are damaged",
        "The journal in which all small documents of a run are kept is no regular file, has become shorter, or has a gap that\n"
        "no worker wrote. Who has begun cannot be told from it, so the run is set aside; the others go on.",
        right="ork doctor",
    ),
    Explanation(
        "ORK830",
        "no valid token",
        "The server answers only those who show a token it knows and has not revoked; hooks may be signed instead.",
        right="export ORK_TOKEN=$(ork token create --role operator)",
    ),
    Explanation(
        "ORK831",
        "the token's role does not allow it",
        "A viewer looks, an operator also starts, stops and decides, an admin also deploys and makes tokens.",
        right="ork token list",
    ),
    Explanation(
        "ORK832",
        "a request from somewhere else",
        "The server was called by a name it does not go by, or from a web page that is not its own. Names besides those\n"
        "of this machine are allowed when it is started.",
        right="ork serve --allowed-host ork.example.com",
    ),
    Explanation(
        "ORK833",
        "the request is too large",
        "More was sent than this path takes. Large data belongs into files or an object store, and its place into params.",
    ),
    Explanation(
        "ORK834",
        "too many wrong tokens",
        "This address has shown so many unknown tokens that begin alike that such tokens are not looked up for a minute.",
    ),
    Explanation(
        "ORK835",
        "no such method",
        "The path is known, but not for this method. The header `Allow` names those it has.",
    ),
    Explanation(
        "ORK840",
        "an address that Ork may not connect to",
        "Jobs and alerts go to public addresses. Private, loopback, link-local and other special ones must be allowed in\n"
        "ork.yaml; the message holds the line.",
        right='# ork.yaml\noutbound: {allow: ["127.0.0.1:8080", 10.0.0.0/8, jobs.internal]}',
    ),
    Explanation(
        "ORK841",
        "no answer",
        "Nobody answers at the address of a job or an alert. It is tried again.",
    ),
    Explanation(
        "ORK842",
        "a secret without a value",
        "The project declares the secret, and where its value should be there is none: the variable is not set, the file is\n"
        "not there, or the command failed.",
        right="# ork.yaml\nsecrets:\n  KEY: {from: command, argv: [vault, kv, get, -field=value, secret/key]}",
    ),
    Explanation(
        "ORK836",
        "too much at once",
        "This token or address has more requests or streams open than one may have, or the server has no room for more.\n"
        "The header `Retry-After` says when to try again.",
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
