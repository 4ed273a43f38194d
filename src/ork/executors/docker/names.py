"""Image names: registry, repository and tag or digest."""

from __future__ import annotations

from typing import NamedTuple

DOCKER_HUB = "docker.io"


class ImageName(NamedTuple):
    """As registries understand it: `reference` is a tag or a digest, `written` the name without either."""

    registry: str
    repository: str
    reference: str
    written: str

    @property
    def is_fixed(self) -> bool:
        """True if the reference is a digest, which always names the same image."""
        return self.reference.startswith("sha256:")

    def at(self, digest: str) -> str:
        """The name with this digest."""
        return f"{self.written}@{digest}"


def read_image_name(text: str) -> ImageName:
    """`[host[:port]/]name[:tag][@digest]`; the first part is a host only if it looks like one."""
    name, _, digest = text.partition("@")
    before, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # what looks like a tag is a port
        before, tag = name, "latest"
    host, slash, path = before.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return ImageName(host, path, digest or tag, before)
    repository = before if slash else f"library/{before}"
    return ImageName(DOCKER_HUB, repository, digest or tag, before)
