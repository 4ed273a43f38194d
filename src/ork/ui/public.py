"""Finds out whether a bucket answers everybody, by asking for an object of it without credentials."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from ork.objects.buckets.address import BucketAddress
    from ork.objects.buckets.documents import BucketDocuments

SECONDS = 10.0


def is_public(documents: BucketDocuments, address: BucketAddress) -> bool:
    """Writes an object, asks for it as anybody could, and deletes it. A service that does not answer is not public."""
    import httpx2

    from ork.outbound.clients import blocking_client

    key = documents.whole_key(f"access-check-{os.urandom(16).hex()}.txt")
    url = anonymous_url(address, key)
    documents.bucket.put(key, b"This object was written to check who can read it.\n")
    try:
        with blocking_client(url, seconds=SECONDS) as client:
            return client.get(url).status_code < 300
    except httpx2.HTTPError:
        return False
    finally:
        documents.bucket.delete_many([key])


def anonymous_url(address: BucketAddress, key: str) -> str:
    """The address of an object for somebody without credentials."""
    bucket, path, endpoint = quote(address.bucket), quote(key), address.endpoint
    if address.scheme == "gs" and endpoint:
        return f"{endpoint}/storage/v1/b/{bucket}/o/{quote(key, safe='')}?alt=media"
    if address.scheme == "gs":
        return f"https://storage.googleapis.com/{bucket}/{path}"
    if address.scheme == "az":
        return f"{endpoint or f'https://{address.account}.blob.core.windows.net'}/{bucket}/{path}"
    if endpoint:
        return f"{endpoint}/{bucket}/{path}"
    return f"https://s3.{address.region or 'us-east-1'}.amazonaws.com/{bucket}/{path}"
