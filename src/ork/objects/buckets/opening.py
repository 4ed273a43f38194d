"""Opens a bucket with the client that fits this process."""

from __future__ import annotations

from ork.objects.buckets.address import read_address
from ork.objects.buckets.documents import BucketDocuments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.objects.buckets.address import BucketAddress
    from ork.objects.buckets.bucket import Bucket


def open_bucket(url: str, *, forks: bool) -> BucketDocuments:
    """Workers fork, and schedulers and commands do not. ObjectsError if the URL is wrong, or a package is missing."""
    address = read_address(url)
    return BucketDocuments(address.url, client_of(address, forks=forks), address.prefix)


def client_of(address: BucketAddress, *, forks: bool) -> Bucket:
    """obstore speaks GCS's XML API only, which emulators lack: an emulator of GCS is used by its JSON API."""
    if not forks and not (address.scheme == "gs" and address.endpoint):
        from ork.objects.buckets.with_obstore import ObstoreBucket

        return ObstoreBucket(address)
    if address.scheme == "gs":
        from ork.objects.buckets.gcs import GcsBucket

        return GcsBucket(address)
    if address.scheme == "s3":
        from ork.objects.buckets.s3 import S3Bucket

        return S3Bucket(address)
    from ork.objects.buckets.azure import AzureBucket

    return AzureBucket(address)
