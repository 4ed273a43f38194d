from dataclasses import dataclass
from datetime import date


@dataclass
class Reading:
    sensor: str
    celsius: float
    note: str = ""


def measure(item: str, day: date) -> Reading:
    return Reading(item, celsius=len(item) + day.day / 10)


def hottest(measure: list[Reading]) -> Reading:
    return max(measure, key=lambda reading: reading.celsius)


def label(hottest: Reading, language: str) -> str:
    return f"{language}: {hottest.sensor} {hottest.celsius}"


def publish(label: str) -> None:
    print(label)
