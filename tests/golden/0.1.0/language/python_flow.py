import ork

etl = ork.Workflow("python_flow", schedule="@daily")


@etl.task(retries=2)
def extract() -> list[int]:
    return [1, 2, 3]


@etl.task(timeout=60)
def total(extract: list[int]) -> int:
    return sum(extract)
