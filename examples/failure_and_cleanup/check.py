def main():
    rows = {"orders": 12, "customers": 0}
    return rows["orders"] / rows["customers"]
