def in_cents(euros: float) -> int:
    return round(euros * 100)
