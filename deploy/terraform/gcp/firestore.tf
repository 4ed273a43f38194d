resource "google_firestore_database" "state" {
  project                 = var.project
  name                    = local.database
  location_id             = coalesce(var.database_location, var.region)
  type                    = "FIRESTORE_NATIVE"
  concurrency_mode        = "OPTIMISTIC"
  delete_protection_state = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy         = "DELETE"
  depends_on              = [google_project_service.api]
}

# The indexes that Ork ships: the same file that `ork db indexes` prints.
locals {
  indexes = jsondecode(file("${path.module}/../../../src/ork/state/firestore/firestore.indexes.json"))
}

resource "google_firestore_index" "composite" {
  for_each = {
    for index in local.indexes.indexes :
    join("-", concat([index.collectionGroup], [for field in index.fields : "${field.fieldPath}_${lower(field.order)}"])) => index
  }
  project     = var.project
  database    = google_firestore_database.state.name
  collection  = each.value.collectionGroup
  query_scope = each.value.queryScope

  dynamic "fields" {
    for_each = each.value.fields
    content {
      field_path = fields.value.fieldPath
      order      = fields.value.order
    }
  }
}

# Fields that must not be indexed: rows of tasks would exceed the index entries of a document.
resource "google_firestore_field" "unindexed" {
  for_each   = { for field in local.indexes.fieldOverrides : "${field.collectionGroup}.${field.fieldPath}" => field }
  project    = var.project
  database   = google_firestore_database.state.name
  collection = each.value.collectionGroup
  field      = each.value.fieldPath

  index_config {}
}
