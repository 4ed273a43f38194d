import os
from functools import cache


def orders() -> list[dict]:
    return [{"fruit": ("apple", "pear", "plum")[number % 3], "count": number} for number in range(100)]


@cache
def table() -> dict[str, int]:
    print(f"process {os.getpid()} reads the table")
    return {"apple": 3, "pear": 5, "plum": 2}


def price(item: dict) -> dict:
    return {"price": table()[item["fruit"]] * item["count"], "process": os.getpid()}


def total(price: list) -> dict:
    return {"sum": sum(each["price"] for each in price), "processes": len({each["process"] for each in price})}
