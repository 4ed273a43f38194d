def count(rows: int) -> dict:
    return {"rows": rows}


def split(item: int, count: dict) -> list:
    return list(range(item, count["rows"], 3))


def simple(count: dict) -> list:
    return list(range(count["rows"]))


def join(split: list | None, simple: list | None) -> dict:
    taken = "split" if split is not None else "simple"
    rows = [row for part in split for row in part] if split is not None else simple
    return {"taken": taken, "rows": sorted(rows)}
