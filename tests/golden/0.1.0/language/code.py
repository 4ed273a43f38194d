from dataclasses import dataclass
from datetime import date

import ork


@dataclass
class Reading:
    sensor: str
    celsius: float


def measure(day: date, sensors: list[str]) -> list[Reading]:
    return [Reading(sensor, 20.0) for sensor in sensors]


def one(item: str) -> Reading:
    return Reading(item, 20.0)


def main(ctx) -> dict:
    return {"count": 3, "names": ["a", "b"]}


class Letters(ork.TaskExecutor):
    def __init__(self, config):
        self.config = config

    def execute(self, context):
        return dict(context.config)
