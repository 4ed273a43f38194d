ORDERS = [
    {"id": 1, "customer": "ada", "amount": 120, "paid": True},
    {"id": 2, "customer": "bob", "amount": 80, "paid": False},
    {"id": 3, "customer": "ada", "amount": 45, "paid": True},
    {"id": 4, "customer": "cyd", "amount": 200, "paid": True},
]


def main():
    print(f"read {len(ORDERS)} orders")
    return ORDERS
