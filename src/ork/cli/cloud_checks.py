"""Checks of `ork doctor --cloud`: what an installation on Google Cloud needs, by reading and by writes that are taken back.

Each finding names the permission, the service or the setting that is missing, a command that mends it, and its line in
deploy/terraform/gcp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from ork.cli.damage_checks import Finding
from ork.errors import AlarmError, OrkError, StoreError, UsageError
from ork.settings import Settings

MODULE = "deploy/terraform/gcp"
SERVICE_SECONDS = 60.0  # a cold start included
_PERMISSION = re.compile(r"\b((?:cloudtasks|iam|run|storage|datastore|logging)\.[a-z][A-Za-z]+\.[a-zA-Z]+)\b")
_DISABLED = re.compile(r"SERVICE_DISABLED|has not been used in project|is not enabled|it is disabled", re.I)
_API = re.compile(r"\b([a-z]+)\.googleapis\.com\b")
_STEPS = {
    "write": "storage.objects.create",
    "conditional write": "storage.objects.create",
    "read": "storage.objects.get",
    "list": "storage.objects.list",
    "delete": "storage.objects.delete",
}


def cloud_settings(settings: Settings) -> Iterator[Finding]:
    """Whether the settings are those of an installation that exists only while something is due."""
    from ork.app.google_cloud import configs_there
    from ork.model.alarm import AlarmKind
    from ork.state.urls import without_password

    def wrong(says: str, fix: str) -> Finding:
        return Finding("settings", says, fix, broken=True)

    if not settings.store.startswith("firestore://"):
        shown = without_password(settings.store)
        yield wrong(f"the store {shown} is gone with the instance", "ORK_STORE=firestore://PROJECT/DATABASE")
    if not settings.objects.startswith("gs://"):
        yield wrong(f"tasks on Cloud Run cannot reach {settings.objects}", "ORK_OBJECTS=gs://BUCKET/PREFIX")
    alarm = settings.alarm
    if alarm is None or alarm.kind is not AlarmKind.CLOUD_TASKS:
        yield wrong(
            "nobody calls a tick when something is due",
            "set ORK_ALARM=cloud_tasks and ORK_ALARM_QUEUE, _URL, _SERVICE_ACCOUNT",
        )
    elif settings.wake_url is None:
        fix = f"ORK_WAKE_URL={alarm.url.rstrip('/')}/api/v1/wake"
        yield wrong("workers that end wake nobody: their results wait for the next look", fix)
    elif urlsplit(settings.wake_url).netloc != urlsplit(alarm.url).netloc:
        yield wrong(f"wake_url {settings.wake_url} is not at the alarm's url {alarm.url}", "use the same host in both")
    if not configs_there(settings):
        says = (
            "no worker config is for Cloud Run: tasks would run in the control plane, which has no CPU between requests"
        )
        yield wrong(says, "add `default_where: cloudrun` to ork.yaml")
    elif settings.project_or_default.gcp is None:
        yield wrong("the place of tasks is not known", "add `gcp: {project: ID, region: REGION}` to ork.yaml")
    for config in configs_there(settings):
        if config.service_account is None:
            says = f"worker config `{config.name}` names no service_account: its tasks run as the project's default account"
            yield Finding("settings", says, f"set it; {MODULE} makes accounts: google_service_account.task")


def cloud_identity(settings: Settings) -> Iterator[Finding]:
    """Who this process is: the checks say what that identity may do."""
    from ork.app.google_cloud import identity, uses_emulators

    if uses_emulators(settings):
        yield Finding("identity", "emulators ask for none")
        return
    found = identity()
    if found.is_person:
        fix = "to check those of the service: gcloud run jobs execute NAME-doctor --wait"
        yield Finding("identity", "a person's: the permissions below are yours", fix)
    else:
        yield Finding("identity", str(found.member))


def cloud_store(settings: Settings) -> Iterator[Finding]:
    """Whether the database can be read and written, and has the indexes."""
    if not settings.store.startswith("firestore://"):
        return
    from ork.app.stores import check_access, missing_indexes
    from ork.model.google_permissions import FIRESTORE

    project = urlsplit(settings.store).netloc
    try:
        check_access(settings)
        missing = missing_indexes(settings)
    except StoreError as error:
        fix = _disabled(error.message, project)
        if fix is None and "does not let us in" in error.message:
            fix = _grant(settings, project, "roles/datastore.user", FIRESTORE, "google_project_iam_member.store")
        elif fix is None and "does not exist" in error.message:
            fix = f"{error.hint}; {MODULE}: google_firestore_database.state"
        yield Finding("database", error.message, fix or error.hint, broken=True)
        return
    for index in missing:
        fix = f"`ork db indexes` has it; {MODULE}: google_firestore_index.composite. A new index takes some minutes"
        yield Finding("database", f"the index {index} is missing or not ready", fix, broken=True)
    if not missing:
        yield Finding("database", f"{settings.store}: read, written, indexes complete")


def cloud_bucket(settings: Settings) -> Iterator[Finding]:
    """Whether objects can be written, written conditionally, read, listed and deleted."""
    if not settings.objects.startswith("gs://"):
        return
    from ork.objects.buckets.opening import open_bucket
    from ork.objects.buckets.probe import try_bucket

    bucket = urlsplit(settings.objects).netloc
    steps = list(try_bucket(open_bucket(settings.objects, forks=False)))
    for step in steps:
        if step.problem is None:
            continue
        fix = step.hint
        if "permission denied" in step.problem:
            command = f"gcloud storage buckets add-iam-policy-binding gs://{bucket} --role=roles/storage.objectUser --member={_member(settings)}"
            fix = f"{_STEPS[step.name]} is missing: {command}; {MODULE}: google_storage_bucket_iam_member.control"
        elif "does not exist" in step.problem:
            command = f"gcloud storage buckets create gs://{bucket} --location=REGION --uniform-bucket-level-access"
            fix = f"{command}; {MODULE}: google_storage_bucket.documents"
        yield Finding("bucket", f"{step.name}: {step.problem}", fix, broken=True)
    if all(step.problem is None for step in steps):
        yield Finding("bucket", f"{settings.objects}: {', '.join(step.name for step in steps)}")


def cloud_queue(settings: Settings) -> Iterator[Finding]:
    """Whether a task for the alarm's account can be put into the queue and removed again."""
    alarm = settings.alarm
    if alarm is None or not alarm.queue:
        return
    from ork.app.alarms import try_alarm
    from ork.model.google_permissions import ACT_AS

    _, project, _, region, _, name = alarm.queue.split("/")
    try:
        try_alarm(settings)
    except (AlarmError, UsageError) as error:
        named = _PERMISSION.search(error.message)
        fix = _disabled(error.message, project) or error.hint
        if named is not None and named[1] in ACT_AS:
            fix = _grant_act_as(settings, alarm.service_account, "google_service_account_iam_member.act_as_wake")
        elif named is not None:
            command = f"gcloud tasks queues add-iam-policy-binding {name} --location={region} --project={project} --member={_member(settings)} --role=ROLE"
            fix = f"{named[1]} is missing: {command}; {MODULE}: google_cloud_tasks_queue_iam_member.control"
        yield Finding("queue", error.message, fix, broken=True)
        return
    yield Finding("queue", f"{alarm.queue}: a task for {alarm.service_account} was created and removed")


def cloud_jobs(settings: Settings) -> Iterator[Finding]:
    """Whether tasks can be started: permissions for Jobs, the accounts of worker configs, and logs."""
    import asyncio

    from ork.app.cloud_run import check_permissions
    from ork.app.google_cloud import configs_there, lacking
    from ork.model.google_permissions import ACT_AS

    configs = configs_there(settings)
    answers = {}
    for config in configs:
        answer = asyncio.run(check_permissions(config, settings))
        answers[answer["address"]] = answer
    for address, answer in answers.items():
        project = (address or "").partition("/")[0]
        fix = _disabled(answer["message"], project)
        if not answer["ok"] and fix is None:
            named = tuple(dict.fromkeys(_PERMISSION.findall(answer["message"])))
            fix = _grant(settings, project, "roles/run.developer", named, "google_project_iam_member.jobs")
        yield Finding("jobs", f"{address or 'no place'}: {answer['message']}", fix, broken=not answer["ok"])
    if not all(answer["ok"] for answer in answers.values()):
        return
    lacks = asyncio.run(lacking(settings))
    for lack in lacks:
        says = lack.problem.message if lack.problem is not None else f"{lack.permission} is missing"
        fix = _disabled(says, lack.place.project)
        if lack.account is not None:
            fix = fix or _grant_act_as(settings, lack.account, "google_service_account_iam_member.act_as_task")
            yield Finding("jobs", f"tasks cannot be started as {lack.account}: {says}", fix, broken=True)
        else:
            named = (lack.permission,)
            fix = fix or _grant(
                settings, lack.place.project, "roles/logging.viewer", named, "google_project_iam_member.jobs"
            )
            yield Finding("jobs", f"logs of plain images cannot be read: {says}", fix)
    accounts = sorted({config.service_account for config in configs if config.service_account is not None})
    if accounts and not any(lack.permission in ACT_AS for lack in lacks):
        yield Finding("jobs", f"tasks may be started as {', '.join(accounts)}")


def cloud_service(settings: Settings) -> Iterator[Finding]:
    """Whether the service answers where the alarm calls it, and lets calls through to Ork."""
    import asyncio

    from ork.app.google_cloud import answer_of

    alarm = settings.alarm
    if alarm is None or not alarm.url:
        return
    url = alarm.url.rstrip("/")
    try:
        status, text = asyncio.run(answer_of(f"{url}/healthz", SERVICE_SECONDS))
    except OSError as error:
        fix = f"is ORK_ALARM_URL right, and the service deployed? {MODULE}: set `image`, google_cloud_run_v2_service.control"
        yield Finding("service", f"{url} does not answer: {error}", fix, broken=True)
        return
    if status == 200:
        yield Finding("service", f"{url} answers")
    elif status in (401, 403) and not text.lstrip().startswith("{"):
        says = (
            f"{url} answers {status}: Cloud Run itself checks callers, and would remove the signatures that Ork checks"
        )
        fix = f"gcloud run services update NAME --no-invoker-iam-check; {MODULE}: invoker_iam_disabled = true"
        yield Finding("service", says, fix, broken=True)
    elif status == 404 and not text.lstrip().startswith("{"):
        fix = f"is ORK_ALARM_URL the address of the service? gcloud run services list; {MODULE}: variable `url`"
        yield Finding("service", f"{url} answers 404: there is no such service", fix, broken=True)
    else:
        fix = "gcloud run services logs read NAME: why it does not start, or does not accept this host"
        yield Finding("service", f"{url} answers {status}: {text[:120]}", fix, broken=True)


def _disabled(message: str, project: str) -> str | None:
    """How to enable the service that the message says is disabled; None if it says nothing of that."""
    named = _API.search(message)
    if named is None or not _DISABLED.search(message):
        return None
    return f"gcloud services enable {named[1]}.googleapis.com --project={project}; {MODULE}: google_project_service.api"


def _grant(settings: Settings, project: str, role: str, permissions: tuple[str, ...], resource: str) -> str:
    command = f"gcloud projects add-iam-policy-binding {project} --role={role} --member={_member(settings)}"
    needed = f"needs {', '.join(permissions)}: " if permissions else ""
    return f"{needed}{command}; {MODULE}: {resource}"


def _grant_act_as(settings: Settings, account: str, resource: str) -> str:
    command = f"gcloud iam service-accounts add-iam-policy-binding {account} --role=roles/iam.serviceAccountUser --member={_member(settings)}"
    return f"needs iam.serviceAccounts.actAs on it: {command}; {MODULE}: {resource}"


def _member(settings: Settings) -> str:
    from ork.app.google_cloud import identity, uses_emulators

    try:
        found = None if uses_emulators(settings) else identity().member
    except OrkError:
        found = None
    return found or "serviceAccount:ACCOUNT"
