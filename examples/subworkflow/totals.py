def check(numbers: list[int]) -> list[int]:
    return sorted(numbers)


def add(name: str, numbers: list[int]) -> dict:
    return {"name": name, "sum": sum(numbers)}


def main(north: int, south: int) -> int:
    return north + south
