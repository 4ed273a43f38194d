import json
from pathlib import Path


def main(transform):
    target = Path("out/totals.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(transform, indent=2))
    return {"path": str(target), "customers": len(transform)}
