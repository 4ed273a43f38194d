from common.money import in_cents
from shop import ORDERS


def main() -> int:
    return sum(in_cents(order) for order in ORDERS)
