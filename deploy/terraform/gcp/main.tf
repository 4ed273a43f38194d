# An installation of Ork that exists only while something is due: docs/gcp.md.

data "google_project" "this" {
  project_id = var.project
}

locals {
  database = coalesce(var.database, var.name)
  bucket   = coalesce(var.bucket, "${var.project}-${var.name}")
  queue    = coalesce(var.queue, var.name)
  # The address that Cloud Run gives a service is known before the service exists.
  url      = coalesce(var.url, "https://${var.name}-${data.google_project.this.number}.${var.region}.run.app")
  registry = "${var.region}-docker.pkg.dev/${var.project}/${var.name}"

  store   = "firestore://${var.project}/${local.database}"
  objects = "gs://${local.bucket}/${var.prefix}"

  # All that `ork serve --on-request` reads of its environment.
  environment = merge({
    ORK_STORE                 = local.store
    ORK_OBJECTS               = local.objects
    ORK_ALARM                 = "cloud_tasks"
    ORK_ALARM_QUEUE           = "projects/${var.project}/locations/${var.region}/queues/${local.queue}"
    ORK_ALARM_URL             = local.url
    ORK_ALARM_SERVICE_ACCOUNT = google_service_account.wake.email
    ORK_WAKE_URL              = "${local.url}/api/v1/wake"
    ORK_LOG_FORMAT            = "json"
  }, var.environment)

  apis = [
    "artifactregistry.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtasks.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "storage.googleapis.com",
  ]
}

resource "google_project_service" "api" {
  for_each           = toset(local.apis)
  project            = var.project
  service            = each.value
  disable_on_destroy = false
}

resource "google_artifact_registry_repository" "images" {
  project       = var.project
  location      = var.region
  repository_id = var.name
  format        = "DOCKER"
  description   = "Images of the control plane and of tasks"
  depends_on    = [google_project_service.api]
}
