"""HTTP requests that Ork itself sends: to container engines, registries, alert targets, jobs, and other Ork servers.

`clients` makes httpx2 clients with one set of defaults (TLS, proxies, timeouts). `fetch` sends one request with limits, and
holds it to the outbound rule in `ork.model.outbound` at every redirect. `guarded` holds libraries to the same rule.
Workers and the SDK do not use this package: they have only the standard library.
"""
