def main(build: dict, release: dict) -> str:
    return f"{build['version']} published, approved by {release['by']}: {release['comment']}"
