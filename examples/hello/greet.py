def main(name: str) -> str:
    print(f"about to greet {name}")
    return f"hello, {name}"
