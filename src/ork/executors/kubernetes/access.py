"""What our identity must be allowed to do in a namespace. Asking changes nothing."""

from __future__ import annotations

import asyncio

from ork.executors.kubernetes.api import ClusterApi

# Verbs, each with the resource as `ClusterApi.may` names it. deploy/ grants exactly these.
NEEDED = (
    ("create", "batch/jobs"),
    ("get", "batch/jobs"),
    ("list", "batch/jobs"),
    ("delete", "batch/jobs"),
    ("get", "/pods"),
    ("list", "/pods"),
    ("watch", "/pods"),
    ("delete", "/pods"),
    ("get", "/pods/log"),
    ("list", "/events"),
)


async def missing_rights(api: ClusterApi) -> list[str]:
    """Those that our identity lacks, such as `create jobs`."""
    allowed = await asyncio.gather(*(api.may(verb, resource) for verb, resource in NEEDED))
    return [
        f"{verb} {resource.partition('/')[2]}"
        for (verb, resource), is_allowed in zip(NEEDED, allowed, strict=True)
        if not is_allowed
    ]
