resource "google_storage_bucket" "documents" {
  project                     = var.project
  name                        = local.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = !var.deletion_protection

  # Each heartbeat replaces an object: what was replaced must not be kept, or it is billed.
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  lifecycle_rule {
    condition {
      age = 1
    }
    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }

  dynamic "lifecycle_rule" {
    for_each = var.keep_days == null ? [] : [var.keep_days]
    content {
      condition {
        age            = lifecycle_rule.value
        matches_prefix = ["${var.prefix}/runs/"] # never identity.json, and never the worker's program
      }
      action {
        type = "Delete"
      }
    }
  }

  depends_on = [google_project_service.api]
}
