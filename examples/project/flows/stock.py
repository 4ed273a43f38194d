"""The same project, a workflow in Python."""

from common.money import in_cents
from shop import ORDERS

from ork import Workflow

stock = Workflow("stock")


@stock.task
def value() -> int:
    return max(in_cents(order) for order in ORDERS)
