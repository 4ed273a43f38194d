output "url" {
  description = "The address of the service: ORK_SERVER for the command line."
  value       = local.url
}

output "registry" {
  description = "Where images are pushed to."
  value       = local.registry
}

output "environment" {
  description = "For a shell whose commands use the installation's store directly: eval \"$(terraform output -raw environment)\"."
  value       = join("\n", [for name in ["ORK_STORE", "ORK_OBJECTS"] : "export ${name}=${local.environment[name]}"])
}

output "ork_yaml" {
  description = "What ork.yaml of the project needs."
  value       = "default_where: cloudrun\ngcp: {project: ${var.project}, region: ${var.region}}\n"
}

output "task_accounts" {
  description = "For `service_account` of worker configs."
  value       = { for name, account in google_service_account.task : name => account.email }
}

output "control_account" {
  description = "The identity of the control plane."
  value       = google_service_account.control.email
}

output "wake_account" {
  description = "The identity of the calls that wake the control plane."
  value       = google_service_account.wake.email
}
