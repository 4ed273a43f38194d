"""Media types of files, by their extension, and back."""

from __future__ import annotations

BYTES = "application/octet-stream"
PARQUET = "application/vnd.apache.parquet"
NPY = "application/vnd.numpy.npy"
FOLDER = "inode/directory"
JSON = "application/json"
_BY_EXTENSION = {
    ".parquet": PARQUET,
    ".npy": NPY,
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": JSON,
    ".jsonl": "application/jsonl",
    ".ndjson": "application/x-ndjson",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".html": "text/html",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".svg": "image/svg+xml",
    ".gif": "image/gif",
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".arrow": "application/vnd.apache.arrow.file",
    ".feather": "application/vnd.apache.arrow.file",
    ".sqlite": "application/vnd.sqlite3",
    ".duckdb": "application/vnd.duckdb",
    ".yaml": "application/yaml",
}


def media_type_of(name: str) -> str:
    extension = name[name.rfind(".") :].lower() if "." in name else ""
    known = _BY_EXTENSION.get(extension)
    if known is not None or not extension:
        return known or BYTES
    from mimetypes import guess_type

    return guess_type(name)[0] or BYTES


def extension_of(media_type: str) -> str:
    """The usual extension of a media type, with its dot; empty if there is none."""
    return next((extension for extension, known in _BY_EXTENSION.items() if known == media_type), "")
