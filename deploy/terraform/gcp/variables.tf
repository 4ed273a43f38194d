variable "project" {
  description = "The id of the Google Cloud project. It must exist and have billing."
  type        = string
}

variable "region" {
  description = "Where the service, its queue, its bucket, its images and its tasks are."
  type        = string
  default     = "europe-west1"
}

variable "name" {
  description = "The name of this installation, and the beginning of the names of all that belongs to it."
  type        = string
  default     = "ork"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,15}$", var.name)) && !endswith(var.name, "-")
    error_message = "Use 2 to 16 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "image" {
  description = "The image of the control plane: Ork with the extras server, gcp and cloud, and your project in /srv/flows. Null: no service yet, because the image has to be pushed to the registry first."
  type        = string
  default     = null
}

variable "url" {
  description = "The address of the service, if it has a domain of its own. Default: the address that Cloud Run gives it."
  type        = string
  default     = null
  validation {
    condition     = var.url == null || can(regex("^https://[^/?#@ ]+$", var.url))
    error_message = "Write https://HOST, without a path."
  }
}

variable "tasks" {
  description = "Service accounts for tasks, by name: `service_account` of a worker config. Each reads only its own secrets of Secret Manager."
  type        = map(object({ secrets = optional(list(string), []) }))
  default     = { task = {} }
  validation {
    condition     = alltrue([for name in keys(var.tasks) : can(regex("^[a-z][a-z0-9-]{0,11}$", name)) && !contains(["control", "wake"], name)])
    error_message = "Names of task accounts have at most 12 lower-case letters, digits and hyphens, and are not control or wake."
  }
}

variable "secrets" {
  description = "Environment variables of the control plane whose values are in Secret Manager: name of the variable to name of the secret, which must exist. For alerts and hooks; secrets of tasks belong into `tasks`."
  type        = map(string)
  default     = {}
}

variable "environment" {
  description = "More environment variables of the control plane, such as ORK_REQUEST_SECONDS. They are visible to everybody who can view the service."
  type        = map(string)
  default     = {}
}

variable "safety_tick" {
  description = "When Cloud Scheduler calls a tick although nothing is due, as a cron expression. Null: never."
  type        = string
  default     = "*/15 * * * *"
}

variable "existing_jobs" {
  description = "Cloud Run jobs that are not made by Ork and that tasks start (`job:`): their ends wake the control plane."
  type        = list(string)
  default     = []
}

variable "bucket" {
  description = "The name of the bucket, unique among all buckets of the world. Default: PROJECT-NAME."
  type        = string
  default     = null
}

variable "prefix" {
  description = "The folder of the bucket in which the documents of attempts are."
  type        = string
  default     = "documents"
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9_-]*$", var.prefix))
    error_message = "Use lower-case letters, digits, hyphens and underscores."
  }
}

variable "keep_days" {
  description = "Logs, outputs and other documents of runs are deleted after this many days. Must be longer than the longest run, waiting for approval included. Null: never."
  type        = number
  default     = 90
  validation {
    condition     = var.keep_days == null || try(var.keep_days >= 14, false)
    error_message = "Keep documents for at least 14 days: an execution may run for seven, and wait before that."
  }
}

variable "restrict_tasks" {
  description = "Task accounts see only the documents of runs and the worker's program in the bucket. False: the whole bucket."
  type        = bool
  default     = true
}

variable "database" {
  description = "The name of the Firestore database. Default: the name of the installation."
  type        = string
  default     = null
}

variable "database_location" {
  description = "The location of the database, which may also be a multi-region such as eur3. Default: the region. It cannot be changed later."
  type        = string
  default     = null
}

variable "queue" {
  description = "The name of the queue in Cloud Tasks. Default: the name of the installation. The name of a deleted queue cannot be used again for some days."
  type        = string
  default     = null
}

variable "max_instances" {
  description = "How many instances of the control plane may run at the same time. There are none while nothing is due."
  type        = number
  default     = 3
}

variable "memory" {
  description = "The memory of an instance of the control plane."
  type        = string
  default     = "512Mi"
}

variable "deletion_protection" {
  description = "Whether `terraform destroy` is refused for the service, the database and the bucket."
  type        = bool
  default     = true
}
