# Three kinds of identities, and no keys: the control plane, the tasks, and the account whose tokens the platform's calls carry.

resource "google_service_account" "control" {
  project      = var.project
  account_id   = "${var.name}-control"
  display_name = "Ork: control plane"
  depends_on   = [google_project_service.api]
}

resource "google_service_account" "task" {
  for_each     = var.tasks
  project      = var.project
  account_id   = "${var.name}-${each.key}"
  display_name = "Ork: tasks (${each.key})"
  depends_on   = [google_project_service.api]
}

# It has no permission at all: Ork checks whose token a call carries.
resource "google_service_account" "wake" {
  project      = var.project
  account_id   = "${var.name}-wake"
  display_name = "Ork: calls of Cloud Tasks, Cloud Scheduler and Pub/Sub"
  depends_on   = [google_project_service.api]
}

# The permissions that the code uses, and no others: src/ork/model/google_permissions.py. A test compares them.
locals {
  roles = {
    store = [
      "datastore.databases.get",
      "datastore.entities.create",
      "datastore.entities.delete",
      "datastore.entities.get",
      "datastore.entities.list",
      "datastore.entities.update",
    ]
    documents = [
      "storage.objects.create",
      "storage.objects.delete",
      "storage.objects.get",
      "storage.objects.list",
    ]
    program = [
      "storage.objects.get",
      "storage.objects.list",
    ]
    jobs = [
      "logging.logEntries.list",
      "run.executions.cancel",
      "run.executions.get",
      "run.executions.list",
      "run.jobs.create",
      "run.jobs.delete",
      "run.jobs.get",
      "run.jobs.list",
      "run.jobs.run",
      "run.jobs.runWithOverrides",
      "run.tasks.list",
    ]
    queue = [
      "cloudtasks.queues.get",
      "cloudtasks.tasks.create",
      "cloudtasks.tasks.delete",
      "cloudtasks.tasks.list",
    ]
    act_as = [
      "iam.serviceAccounts.actAs",
    ]
  }

  control = google_service_account.control.member
}

resource "google_project_iam_custom_role" "ork" {
  for_each    = local.roles
  project     = var.project
  role_id     = "${replace(var.name, "-", "_")}_${each.key}"
  title       = "Ork ${var.name}: ${each.key}"
  permissions = each.value
  depends_on  = [google_project_service.api]
}

# ── the control plane ─────────────────────────────────────────────────────────────────────────────

resource "google_project_iam_member" "store" {
  project = var.project
  role    = google_project_iam_custom_role.ork["store"].name
  member  = local.control
  condition {
    title      = "only_database_${local.database}"
    expression = "resource.type == \"firestore.googleapis.com/Database\" && resource.name == \"projects/${var.project}/databases/${local.database}\""
  }
}

resource "google_project_iam_member" "jobs" {
  project = var.project
  role    = google_project_iam_custom_role.ork["jobs"].name
  member  = local.control
}

resource "google_storage_bucket_iam_member" "control" {
  bucket = google_storage_bucket.documents.name
  role   = google_project_iam_custom_role.ork["documents"].name
  member = local.control
  condition {
    title      = "only_${var.prefix}"
    expression = "resource.name.startsWith(\"projects/_/buckets/${local.bucket}/objects/${var.prefix}/\") || api.getAttribute(\"storage.googleapis.com/objectListPrefix\", \"\").startsWith(\"${var.prefix}/\")"
  }
}

resource "google_cloud_tasks_queue_iam_member" "control" {
  project  = var.project
  location = var.region
  name     = google_cloud_tasks_queue.wakes.name
  role     = google_project_iam_custom_role.ork["queue"].name
  member   = local.control
}

# To start tasks as their accounts, and to have Cloud Tasks call as the account for wakes.
resource "google_service_account_iam_member" "act_as_task" {
  for_each           = google_service_account.task
  service_account_id = each.value.name
  role               = google_project_iam_custom_role.ork["act_as"].name
  member             = local.control
}

resource "google_service_account_iam_member" "act_as_wake" {
  service_account_id = google_service_account.wake.name
  role               = google_project_iam_custom_role.ork["act_as"].name
  member             = local.control
}

resource "google_secret_manager_secret_iam_member" "control" {
  for_each  = toset(values(var.secrets))
  project   = var.project
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = local.control
}

# ── tasks ─────────────────────────────────────────────────────────────────────────────────────────

# Documents of runs: read, written and replaced, which needs the permission to delete.
resource "google_storage_bucket_iam_member" "task_runs" {
  for_each = google_service_account.task
  bucket   = google_storage_bucket.documents.name
  role     = google_project_iam_custom_role.ork["documents"].name
  member   = each.value.member
  dynamic "condition" {
    for_each = var.restrict_tasks ? ["runs"] : []
    content {
      title      = "only_${var.prefix}_runs"
      expression = "resource.name.startsWith(\"projects/_/buckets/${local.bucket}/objects/${var.prefix}/runs/\") || api.getAttribute(\"storage.googleapis.com/objectListPrefix\", \"\").startsWith(\"${var.prefix}/runs/\")"
    }
  }
}

# The worker's program, which Cloud Run mounts read-only into images without Ork.
resource "google_storage_bucket_iam_member" "task_program" {
  for_each = var.restrict_tasks ? google_service_account.task : {}
  bucket   = google_storage_bucket.documents.name
  role     = google_project_iam_custom_role.ork["program"].name
  member   = each.value.member
  condition {
    title      = "only_${var.prefix}_workers"
    expression = "resource.name.startsWith(\"projects/_/buckets/${local.bucket}/objects/${var.prefix}/workers/\") || api.getAttribute(\"storage.googleapis.com/objectListPrefix\", \"\").startsWith(\"${var.prefix}/workers\")"
  }
}

locals {
  task_secrets = merge([
    for name, task in var.tasks : { for secret in task.secrets : "${name}/${secret}" => { task = name, secret = secret } }
  ]...)
}

resource "google_secret_manager_secret_iam_member" "task" {
  for_each  = local.task_secrets
  project   = var.project
  secret_id = each.value.secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.task[each.value.task].member
}
