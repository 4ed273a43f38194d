def load(ctx) -> list[int]:
    rows = list(range(100))
    ctx.log.info("loaded", rows=len(rows), source="numbers")
    ctx.metrics.set("rows", len(rows))
    return rows


def total(load: list[int]) -> int:
    return sum(load)
