def main(fetch: dict[str, int]) -> str:
    return f"answered at attempt {fetch['answered_at_attempt']}"
