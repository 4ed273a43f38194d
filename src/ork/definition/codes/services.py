"""8xx: the store and the services."""

from __future__ import annotations

from ork.definition.codes.explanation import CodeExplanation, by_code

CODES = by_code(
    CodeExplanation(
        "ORK800",
        "internal error",
        "An error without a code of its own. Set ORK_DEBUG=1 to see the traceback.",
    ),
    CodeExplanation(
        "ORK801",
        "invalid usage",
        "The command or call is invalid. The message says why.",
        right="ork COMMAND --help",
    ),
    CodeExplanation(
        "ORK802",
        "not found",
        "There is no such run, task, workflow, file or code. Ids can be shortened as long as they are unique; `@last` is the last\n"
        "run.",
        right="ork runs",
    ),
    CodeExplanation(
        "ORK803",
        "rejected",
        "The request is valid but cannot be carried out now: the run has ended, another process holds it, or it is not allowed.",
        right="ork show RUN",
    ),
    CodeExplanation(
        "ORK810",
        "state store error",
        "The disk may be full, the file may not be writable, or it was created by a newer version of Ork.",
        right="ork db status\nork doctor",
    ),
    CodeExplanation(
        "ORK811",
        "state store not available",
        "Another process locks it for too long, or it cannot be reached. Try again later.",
        right="ork doctor",
    ),
    CodeExplanation(
        "ORK812",
        "settings differ from the installation's",
        "All schedulers of an installation must use the same object store and the same limits for lost workers. With another\n"
        "object store an attempt could start twice. Nothing was done.",
        right="ork db settings",
    ),
    CodeExplanation(
        "ORK813",
        "damaged item in the store",
        "A row of the store or a stored document is damaged. It is quarantined with its reason, and everything else continues.\n"
        "To repair a version, workflow or schedule, deploy the workflow again. To repair a run, repair its row and use\n"
        "`ork resume`, or end it with `ork cancel`.",
        right="ork doctor",
    ),
    CodeExplanation(
        "ORK820",
        "object store error",
        "The disk may be full, or the folder may not be writable.",
        right="ork doctor",
    ),
    CodeExplanation(
        "ORK821",
        "untrusted document",
        "A document is malformed, too large, or not signed by the attempt it claims to come from. It is ignored; only that\n"
        "attempt is affected.",
    ),
    CodeExplanation(
        "ORK822",
        "damaged documents of a run",
        "The journal of a run's documents is no regular file, has become shorter, or has a gap that no worker wrote. It no longer\n"
        "shows which attempts have started, so the run is quarantined; other runs continue.",
        right="ork doctor",
    ),
    CodeExplanation(
        "ORK830",
        "missing or invalid token",
        "The server requires a valid token that is not revoked; hooks may be signed instead.",
        right="export ORK_TOKEN=$(ork token create --role operator)",
    ),
    CodeExplanation(
        "ORK831",
        "insufficient role",
        "A viewer can read; an operator can also start and stop runs and approve; an admin can also deploy and create tokens.",
        right="ork token list",
    ),
    CodeExplanation(
        "ORK832",
        "host or origin not allowed",
        "The server was called by a host name that is not allowed, or from a web page of another origin. Other host names than\n"
        "those of this machine have to be allowed at start.",
        right="ork serve --allowed-host ork.example.com",
    ),
    CodeExplanation(
        "ORK833",
        "request too large",
        "The request exceeds the limit of this path. Put large data into files or an object store, and pass its location as a\n"
        "param.",
    ),
    CodeExplanation(
        "ORK834",
        "too many invalid tokens",
        "This address has sent too many unknown tokens with the same prefix. Such tokens are rejected for a minute.",
    ),
    CodeExplanation(
        "ORK835",
        "method not allowed",
        "The path exists, but not for this method. The `Allow` header lists the allowed ones.",
    ),
    CodeExplanation(
        "ORK840",
        "outbound address not allowed",
        "Jobs and alerts may only use public addresses. Private, loopback, link-local and other special addresses must be allowed\n"
        "in ork.yaml; the message contains the line to add.",
        right='# ork.yaml\noutbound: {allow: ["127.0.0.1:8080", 10.0.0.0/8, jobs.internal]}',
    ),
    CodeExplanation(
        "ORK841",
        "no response",
        "The address of a job or an alert does not respond. The request is retried.",
    ),
    CodeExplanation(
        "ORK842",
        "secret without a value",
        "The secret is declared but has no value: the variable is not set, the file does not exist, or the command failed.",
        right="# ork.yaml\nsecrets:\n  KEY: {from: command, argv: [vault, kv, get, -field=value, secret/key]}",
    ),
    CodeExplanation(
        "ORK836",
        "too many requests",
        "This token or address has too many open requests or streams, or the server is at its limit. The `Retry-After` header\n"
        "says when to try again.",
    ),
    CodeExplanation(
        "ORK850",
        "the alarm does not work",
        "The alarm calls a tick when something is due. The service behind it cannot be reached, or refuses to set it. What was\n"
        "written is stored; until the alarm works, only the safety tick and other calls start due work.",
        right="ork doctor",
    ),
    CodeExplanation(
        "ORK851",
        "invalid alarm",
        "The alarm is `none`, `systemd` or a queue of Cloud Tasks. ORK_ALARM, ORK_ALARM_QUEUE, ORK_ALARM_URL and\n"
        "ORK_ALARM_SERVICE_ACCOUNT replace the values in ork.yaml.",
        "alarm: cron",
        "alarm:\n  cloud_tasks:\n    queue: projects/my-project/locations/europe-west1/queues/ork\n"
        "    url: https://ork-abc123.a.run.app\n    service_account: ork-wake@my-project.iam.gserviceaccount.com",
    ),
    CodeExplanation(
        "ORK890",
        "invalid state transition",
        "A bug in Ork: an event arrived for a run or a task in a state that does not allow it. The run is quarantined so that\n"
        "others can continue.",
    ),
    CodeExplanation(
        "ORK899",
        "a bug in Ork",
        "An unexpected error. Set ORK_DEBUG=1 to see the traceback, and please report it.",
        right="ORK_DEBUG=1 ork COMMAND",
    ),
)
