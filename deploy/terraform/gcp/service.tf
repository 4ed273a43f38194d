resource "google_cloud_run_v2_service" "control" {
  count               = var.image == null ? 0 : 1
  project             = var.project
  name                = var.name
  location            = var.region
  ingress             = "INGRESS_TRAFFIC_ALL"
  deletion_protection = var.deletion_protection

  # Ork checks tokens itself. If Cloud Run did, it would remove the signatures that Ork needs.
  invoker_iam_disabled = true

  template {
    service_account                  = google_service_account.control.email
    timeout                          = "120s"
    max_instance_request_concurrency = 80

    scaling {
      min_instance_count = 0
      max_instance_count = var.max_instances
    }

    containers {
      image = var.image
      # The front end of Cloud Run connects from a link-local address.
      args = ["serve", "--on-request", "--host", "0.0.0.0", "--port", "8080", "--trusted-proxy", "169.254.0.0/16"]

      ports {
        container_port = 8080
      }

      resources {
        limits            = { cpu = "1", memory = var.memory }
        cpu_idle          = true # CPU only during requests
        startup_cpu_boost = true
      }

      dynamic "env" {
        for_each = local.environment
        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "env" {
        for_each = var.secrets
        content {
          name = env.key
          value_source {
            secret_key_ref {
              secret  = env.value
              version = "latest"
            }
          }
        }
      }
    }
  }

  depends_on = [
    google_cloud_tasks_queue_iam_member.control,
    google_firestore_field.unindexed,
    google_firestore_index.composite,
    google_project_iam_member.jobs,
    google_project_iam_member.store,
    google_secret_manager_secret_iam_member.control,
    google_service_account_iam_member.act_as_task,
    google_service_account_iam_member.act_as_wake,
    google_storage_bucket_iam_member.control,
  ]
}

# `ork doctor --cloud` with the identity and the environment of the service. It costs nothing until somebody executes it.
resource "google_cloud_run_v2_job" "doctor" {
  count               = var.image == null ? 0 : 1
  project             = var.project
  name                = "${var.name}-doctor"
  location            = var.region
  deletion_protection = false

  template {
    template {
      service_account = google_service_account.control.email
      timeout         = "300s"
      max_retries     = 0

      containers {
        image = var.image
        args  = ["doctor", "--cloud"]

        resources {
          limits = { cpu = "1", memory = var.memory }
        }

        dynamic "env" {
          for_each = local.environment
          content {
            name  = env.key
            value = env.value
          }
        }

        dynamic "env" {
          for_each = var.secrets
          content {
            name = env.key
            value_source {
              secret_key_ref {
                secret  = env.value
                version = "latest"
              }
            }
          }
        }
      }
    }
  }

  depends_on = [google_cloud_run_v2_service.control]
}
