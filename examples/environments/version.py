import packaging


def main() -> str:
    return packaging.__version__
