from pathlib import Path


def main(city: str) -> dict:
    """Slow, dear and the same all day: every real call leaves a line behind."""
    Path("out").mkdir(exist_ok=True)
    with Path("out/calls").open("a") as calls:
        calls.write(f"{city}\n")
    return {"city": city, "temperature": 10 + len(city)}
