"""The permissions that Ork's identities need on Google Cloud: what its code calls, and nothing else.

`deploy/terraform/gcp` makes its roles of these lists, and `ork doctor --cloud` names them. A test compares them with the calls
in the code.
"""

from __future__ import annotations

# ── of the control plane: `ork serve`, `ork tick`, and people who use the store directly ──────────

FIRESTORE = (
    "datastore.databases.get", "datastore.entities.create", "datastore.entities.delete", "datastore.entities.get",
    "datastore.entities.list", "datastore.entities.update",
)  # fmt: skip
# Replacing an object needs the permission to delete it.
BUCKET = ("storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list")
CLOUD_RUN = (
    "run.jobs.create", "run.jobs.get", "run.jobs.list", "run.jobs.delete", "run.jobs.run", "run.jobs.runWithOverrides",
    "run.executions.get", "run.executions.list", "run.executions.cancel", "run.tasks.list",
)  # fmt: skip
LOGS = ("logging.logEntries.list",)  # of plain images
QUEUE = ("cloudtasks.queues.get", "cloudtasks.tasks.create", "cloudtasks.tasks.delete", "cloudtasks.tasks.list")
ACT_AS = ("iam.serviceAccounts.actAs",)  # on the accounts of tasks, and on the one whose tokens the alarm's calls carry

# ── of tasks ──────────────────────────────────────────────────────────────────────────────────────

TASK_RUNS = BUCKET  # below `runs/`
TASK_PROGRAM = ("storage.objects.get", "storage.objects.list")  # below `workers/`: the worker for images without Ork
