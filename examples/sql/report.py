def main(rows: list[dict], first: dict) -> str:
    totals = ", ".join(f"{row['customer']} {row['cents']}" for row in rows)
    return f"{totals}; the first order of {first['customer']} was {first['cents']}"
