def orders() -> list[int]:
    return [120, 80, 200]


def line(orders: list[int]) -> str:
    return f"{len(orders)} orders, {sum(orders)} in all"
