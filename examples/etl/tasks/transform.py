from collections import Counter


def main(extract):
    totals = Counter()
    for order in extract:
        if order["paid"]:
            totals[order["customer"]] += order["amount"]
    return dict(totals)
