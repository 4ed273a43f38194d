"""A command in an environment: `python` is the environment's own."""

import json
import sys

from packaging.version import Version

found = json.load(sys.stdin)
print(json.dumps(sorted(found.values(), key=Version)))
