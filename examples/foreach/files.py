from ork import Context


def find() -> dict:
    return {"files": [{"name": f"part-{number}", "size": 10 * number} for number in range(12)]}


def measure(item: dict, ctx: Context) -> int:
    if item["name"] == "part-7" and ctx.attempt < 3:
        raise ConnectionError(f"{item['name']} is busy")
    return item["size"]


def total(measure: list) -> dict:
    return {"sizes": measure, "sum": sum(measure)}
