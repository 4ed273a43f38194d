import hmac


def sign(key: str, pin: str, text: str) -> str:
    print(f"signing with {key} and {pin}")
    return hmac.digest((key + pin).encode(), text.encode(), "sha256").hex()
