"""A real Kubernetes for tests: etcd, API server and controller manager, and a node agent that runs pods on a container engine.

`cluster.py` starts and stops them. `node.py` is the node: it binds pods to itself, and `pods.py` runs each on the engine
as a kubelet would. `proxy.py` stands between a client and the API server and breaks what it is asked to break.
"""
