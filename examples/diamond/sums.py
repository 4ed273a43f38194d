def split(count: int = 10) -> dict[str, list[int]]:
    numbers = range(1, count + 1)
    return {"evens": [n for n in numbers if n % 2 == 0], "odds": [n for n in numbers if n % 2]}


def add_up(values: list[int]) -> int:
    return sum(values)


def join(evens: int, odds: int) -> dict[str, int]:
    return {"evens": evens, "odds": odds, "total": evens + odds}
