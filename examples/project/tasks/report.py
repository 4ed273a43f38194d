"""A task that more than one workflow runs."""


def main(total: int) -> str:
    return f"{total / 100:.2f} EUR"
