# Who wakes the control plane: the queue at the next due time, the end of a plain container, and a slow safety tick.

resource "google_cloud_tasks_queue" "wakes" {
  project  = var.project
  name     = local.queue
  location = var.region

  retry_config {
    max_attempts = -1
    min_backoff  = "1s"
    max_backoff  = "300s"
  }

  depends_on = [google_project_service.api]
}

resource "google_cloud_scheduler_job" "safety_tick" {
  count            = var.safety_tick == null || var.image == null ? 0 : 1
  project          = var.project
  region           = var.region
  name             = "${var.name}-safety-tick"
  description      = "Finds what a lost call left behind"
  schedule         = var.safety_tick
  time_zone        = "Etc/UTC"
  attempt_deadline = "120s"

  http_target {
    http_method = "POST"
    uri         = "${local.url}/api/v1/tick"
    oidc_token {
      service_account_email = google_service_account.wake.email
      audience              = local.url
    }
  }

  depends_on = [google_project_service.api]
}

# ── ends of containers in which nothing of Ork runs ───────────────────────────────────────────────

resource "google_pubsub_topic" "ends" {
  project    = var.project
  name       = "${var.name}-ends"
  depends_on = [google_project_service.api]
}

# Jobs of plain images (ork-a-…), jobs of others that tasks start, and workers that the platform ended: none of these can call.
resource "google_logging_project_sink" "ends" {
  project                = var.project
  name                   = "${var.name}-ends"
  destination            = "pubsub.googleapis.com/${google_pubsub_topic.ends.id}"
  unique_writer_identity = true
  filter = join(" AND ", [
    "log_id(\"cloudaudit.googleapis.com/system_event\")",
    "resource.type=\"cloud_run_job\"",
    "protoPayload.methodName=\"/Jobs.RunJob\"",
    "(${join(" OR ", concat(
      ["resource.labels.job_name=~\"^ork-a-\"", "(resource.labels.job_name=~\"^ork-\" AND severity>=ERROR)"],
      [for job in var.existing_jobs : "resource.labels.job_name=\"${job}\""],
    ))})",
  ])
}

resource "google_pubsub_topic_iam_member" "sink" {
  project = var.project
  topic   = google_pubsub_topic.ends.name
  role    = "roles/pubsub.publisher"
  member  = google_logging_project_sink.ends.writer_identity
}

resource "google_pubsub_subscription" "ends" {
  count                      = var.image == null ? 0 : 1
  project                    = var.project
  name                       = "${var.name}-ends"
  topic                      = google_pubsub_topic.ends.id
  ack_deadline_seconds       = 60
  message_retention_duration = "3600s"

  push_config {
    push_endpoint = "${local.url}/api/v1/events/pubsub"
    oidc_token {
      service_account_email = google_service_account.wake.email
      audience              = local.url
    }
  }

  # Without this the subscription is deleted after 31 days without a message.
  expiration_policy {
    ttl = ""
  }

  retry_policy {
    minimum_backoff = "5s"
    maximum_backoff = "300s"
  }

  depends_on = [google_service_account_iam_member.pubsub]
}

# Pub/Sub makes the tokens of its calls. Cloud Tasks and Cloud Scheduler may do so by the roles of their service agents.
resource "google_service_account_iam_member" "pubsub" {
  service_account_id = google_service_account.wake.name
  role               = "roles/iam.serviceAccountOpenIdTokenCreator"
  member             = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
  depends_on         = [google_pubsub_topic.ends]
}
