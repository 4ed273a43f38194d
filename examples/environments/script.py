# /// script
# requires-python = ">=3.11"
# dependencies = ["packaging==24.1"]
# ///
import packaging


def main() -> str:
    return packaging.__version__
