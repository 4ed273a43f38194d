"""Attempt documents in a bucket: Google Cloud Storage, S3 and what speaks its protocol, Azure Blob Storage.

In: the URL of a bucket (`address`). Out: `documents.BucketDocuments`, on one of two kinds of client with the same few verbs
(`bucket.Bucket`). Schedulers and commands use obstore (`with_obstore`), from the extra `cloud`. Workers use `gcs`, `s3` and `azure`,
which need the standard library only.
"""
