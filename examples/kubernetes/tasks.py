"""Plain functions: they know neither Ork nor Kubernetes."""


def words(text: str) -> list[str]:
    return text.split()


def length(word: str) -> int:
    print(word, "has", len(word), "letters")
    return len(word)


def total(lengths: list[int]) -> int:
    return sum(lengths)
