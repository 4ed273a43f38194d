"""Container settings of specs for Cloud Run, and orders for launch groups."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ork.executors.executor import Executor, GroupOrder, LaunchOrder
from ork.model.ids import AttemptKey, TaskKey
from ork.model.task import Attempt, AttemptStatus, GroupPlace
from ork.objects import documents
from tests.integration.workshop import SIGNING_KEY, Workshop


def container_document(image: str, **changes: Any) -> dict[str, Any]:
    own = {
        "service_account": None, "vpc_connector": None, "network": None, "subnet": None, "gpu": None, "has_ork": True,
        "secrets": {},
    }  # fmt: skip
    return {"image": image, "cpu": None, "memory": None, "cloud_run": own | changes}


def group_order(shop: Workshop, executor: Executor, size: int, parallelism: int, script: str) -> GroupOrder:
    """Attempts of one task that run the script, as a scheduler orders them to be started together. `{name}` is the attempt's."""
    run = shop.attempt("each").key.run
    keys = [AttemptKey(run, TaskKey("each", index), 1) for index in range(size)]
    id = str(keys[0])
    secret = documents.group_key(SIGNING_KEY, id)
    orders = []
    for index, key in enumerate(keys):
        token = documents.derive_token(secret, str(key))
        attempt = Attempt(
            key, AttemptStatus.DISPATCHED, executor.name, executor.name_for(key), documents.token_hash(token),
            datetime.now(UTC), group=GroupPlace(id, index, parallelism),
        )  # fmt: skip
        own = {
            "argv": ["sh", "-c", script.format(name=key)],
            "kind": "command",
            "container": container_document("image"),
        }
        spec = documents.sign({**shop.spec(attempt), **own, "news": None}, attempt.token_hash)
        shop.objects.put_specs([(str(key), spec)])
        orders.append(LaunchOrder(attempt, token, str(shop.root), spec=spec))
    return GroupOrder(id, parallelism, secret.hex(), tuple(orders))
