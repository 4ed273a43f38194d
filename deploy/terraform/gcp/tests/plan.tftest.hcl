# Plans of the module with a provider that calls nobody: terraform init -backend=false && terraform test

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
  mock_resource "google_service_account" {
    defaults = { email = "account@my-project.iam.gserviceaccount.com", member = "serviceAccount:account@my-project.iam.gserviceaccount.com", name = "projects/my-project/serviceAccounts/account@my-project.iam.gserviceaccount.com" }
  }
  mock_resource "google_project_iam_custom_role" {
    defaults = { name = "projects/my-project/roles/ork_role" }
  }
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "serviceAccount:sink@gcp-sa-logging.iam.gserviceaccount.com" }
  }
}

variables {
  project = "my-project"
}

run "without_an_image_nothing_calls_a_service_that_does_not_exist" {
  command = apply
  assert {
    condition     = length(google_cloud_run_v2_service.control) + length(google_cloud_scheduler_job.safety_tick) + length(google_pubsub_subscription.ends) == 0
    error_message = "The first apply makes only what the image is pushed to, and what it will need."
  }
  assert {
    condition     = output.registry == "europe-west1-docker.pkg.dev/my-project/ork"
    error_message = "The registry must be known for the push."
  }
  assert {
    condition     = length(google_firestore_index.composite) == length(local.indexes.indexes) && length(google_firestore_field.unindexed) == length(local.indexes.fieldOverrides)
    error_message = "Every index of the shipped file must be made, each under a name of its own."
  }
}

run "with_an_image_the_service_scales_to_zero_and_is_called" {
  command = apply
  variables {
    image = "europe-west1-docker.pkg.dev/my-project/ork/flows:1"
  }
  assert {
    condition     = google_cloud_run_v2_service.control[0].template[0].scaling[0].min_instance_count == 0 && google_cloud_run_v2_service.control[0].template[0].containers[0].resources[0].cpu_idle
    error_message = "No instance may be alive, and no CPU billed, while nothing is due."
  }
  assert {
    condition     = output.url == "https://ork-123456789.europe-west1.run.app"
    error_message = "The address must be the one that Cloud Run will give."
  }
  assert {
    condition     = alltrue([for token in [google_cloud_scheduler_job.safety_tick[0].http_target[0].oidc_token[0], google_pubsub_subscription.ends[0].push_config[0].oidc_token[0]] : token.audience == output.url])
    error_message = "Every call must carry a token for the audience that Ork expects."
  }
  assert {
    condition     = google_pubsub_subscription.ends[0].expiration_policy[0].ttl == ""
    error_message = "The subscription must not expire in a quiet month."
  }
  assert {
    condition     = google_storage_bucket.documents.soft_delete_policy[0].retention_duration_seconds == 0
    error_message = "Replaced heartbeats must not be kept and billed."
  }
  assert {
    condition     = alltrue([for rule in google_storage_bucket.documents.lifecycle_rule : one(rule.condition).matches_prefix == tolist(["documents/runs/"]) if one(rule.action).type == "Delete"])
    error_message = "The lifecycle may delete documents of runs only."
  }
  assert {
    condition     = strcontains(google_storage_bucket_iam_member.task_runs["task"].condition[0].expression, "/objects/documents/runs/")
    error_message = "Tasks see only the documents of runs."
  }
}

run "the_safety_tick_can_be_off" {
  command = apply
  variables {
    image       = "europe-west1-docker.pkg.dev/my-project/ork/flows:1"
    safety_tick = null
    url         = "https://ork.example.com"
    tasks       = { extract = { secrets = ["API_KEY"] }, load = {} }
    secrets     = { SLACK_WEBHOOK = "slack-webhook" }
  }
  assert {
    condition     = length(google_cloud_scheduler_job.safety_tick) == 0
    error_message = "Nothing may happen while nothing is due."
  }
  assert {
    condition     = join(",", keys(google_secret_manager_secret_iam_member.task)) == "extract/API_KEY" && join(",", keys(google_secret_manager_secret_iam_member.control)) == "slack-webhook"
    error_message = "Each identity reads its own secrets only."
  }
  assert {
    condition     = output.url == "https://ork.example.com" && google_pubsub_subscription.ends[0].push_config[0].push_endpoint == "https://ork.example.com/api/v1/events/pubsub"
    error_message = "A domain of one's own is used everywhere."
  }
}

run "documents_are_not_deleted_under_running_tasks" {
  command = plan
  variables {
    keep_days = 3
  }
  expect_failures = [var.keep_days]
}
