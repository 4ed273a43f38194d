"""Hooks, SQL, HTTP and object stores for imported functions, with the usual packages. Copied here by `ork import airflow`.

Connections come from AIRFLOW_CONN_ID, as in `from_airflow.py`. This file belongs to your project.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from from_airflow import AirflowException, BaseHook, Connection, connection_url


class DbApiHook:
    """`get_conn`, `run`, `get_records`, `get_first`, `insert_rows` and pandas on a connection of a database driver."""

    default_conn = ""

    def __init__(self, conn_id: str | None = None, *_: Any, schema: str | None = None, **given: Any) -> None:
        named = [value for key, value in given.items() if key.endswith("conn_id")]
        self.conn_id = conn_id or (named[0] if named else self.default_conn)
        self.schema = schema or given.get("database")

    def get_connection(self, conn_id: str) -> Connection:
        return BaseHook.get_connection(conn_id)

    def get_uri(self) -> str:
        return str(connection_url(self.conn_id))

    def get_conn(self) -> Any:
        raise AirflowException(f"{type(self).__name__} has no driver")

    def get_sqlalchemy_engine(self, engine_kwargs: dict[str, Any] | None = None) -> Any:
        import sqlalchemy

        return sqlalchemy.create_engine(database_url(self.get_uri()), **(engine_kwargs or {}))

    def run(self, sql: Any, autocommit: bool = False, parameters: Any = None, handler: Any = None, **_: Any) -> Any:  # noqa: ARG002
        statements = [sql] if isinstance(sql, str) else list(sql)
        result = None
        connection = self.get_conn()
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement, parameters) if parameters else cursor.execute(statement)
                result = handler(cursor) if handler else None
            connection.commit()
        finally:
            connection.close()
        return result

    def get_records(self, sql: str, parameters: Any = None) -> Any:
        return self.run(sql, parameters=parameters, handler=lambda cursor: cursor.fetchall())

    def get_first(self, sql: str, parameters: Any = None) -> Any:
        return self.run(sql, parameters=parameters, handler=lambda cursor: cursor.fetchone())

    def get_pandas_df(self, sql: str, parameters: Any = None, **given: Any) -> Any:
        import pandas

        connection = self.get_conn()
        try:
            return pandas.read_sql(sql, connection, params=parameters, **given)
        finally:
            connection.close()

    def insert_rows(self, table: str, rows: Any, target_fields: Any = None, commit_every: int = 1000, **_: Any) -> None:
        connection = self.get_conn()
        columns = f" ({', '.join(target_fields)})" if target_fields else ""
        try:
            cursor = connection.cursor()
            for number, row in enumerate(rows, 1):
                marks = ", ".join([self.mark] * len(row))
                cursor.execute(f"insert into {table}{columns} values ({marks})", tuple(row))
                if commit_every and number % commit_every == 0:
                    connection.commit()
            connection.commit()
        finally:
            connection.close()

    mark = "%s"


class PostgresHook(DbApiHook):
    default_conn = "postgres_default"

    def get_conn(self) -> Any:
        import psycopg2

        url = self.get_uri().replace("postgres://", "postgresql://", 1)
        return psycopg2.connect(url, dbname=self.schema) if self.schema else psycopg2.connect(url)

    def copy_expert(self, sql: str, filename: str) -> None:
        connection = self.get_conn()
        try:
            with open(filename, "r+", encoding="utf-8") as file:
                connection.cursor().copy_expert(sql, file)
            connection.commit()
        finally:
            connection.close()


class MySqlHook(DbApiHook):
    default_conn = "mysql_default"

    def get_conn(self) -> Any:
        import pymysql

        found = self.get_connection(self.conn_id)
        return pymysql.connect(
            host=found.host, user=found.login, password=found.password or "", port=found.port or 3306,
            database=self.schema or found.schema,
        )  # fmt: skip


class SqliteHook(DbApiHook):
    default_conn = "sqlite_default"
    mark = "?"

    def get_conn(self) -> Any:
        import sqlite3

        parts = urlsplit(self.get_uri())
        return sqlite3.connect(unquote(parts.path if not parts.netloc else f"{parts.netloc}{parts.path}"))


class MsSqlHook(DbApiHook):
    default_conn = "mssql_default"

    def get_conn(self) -> Any:
        import pymssql

        found = self.get_connection(self.conn_id)
        return pymssql.connect(found.host, found.login, found.password, self.schema or found.schema)


class HttpHook:
    """`run(endpoint)` sends a request with the package requests."""

    def __init__(self, method: str = "POST", http_conn_id: str = "http_default", **_: Any) -> None:
        self.method = method
        self.http_conn_id = http_conn_id

    def run(
        self, endpoint: str = "", data: Any = None, headers: Any = None, extra_options: Any = None, **given: Any
    ) -> Any:
        import requests

        base = connection_url(self.http_conn_id).rstrip("/")
        key = "params" if self.method == "GET" else "data"
        response = requests.request(
            self.method,
            f"{base}/{endpoint.lstrip('/')}",
            headers=headers,
            **{key: data},
            **(extra_options or {}),
            **given,
        )
        response.raise_for_status()
        return response


class GCSHook:
    """The usual methods, on google-cloud-storage with its own credentials."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def get_conn(self) -> Any:
        import google.cloud.storage as storage

        return storage.Client()

    def list(self, bucket_name: str, prefix: str | None = None, **_: Any) -> Any:
        return [each.name for each in self.get_conn().list_blobs(bucket_name, prefix=prefix)]

    def exists(self, bucket_name: str, object_name: str, **_: Any) -> Any:
        return self.get_conn().bucket(bucket_name).blob(object_name).exists()

    def upload(
        self, bucket_name: str, object_name: str, filename: str | None = None, data: Any = None, **_: Any
    ) -> None:
        blob = self.get_conn().bucket(bucket_name).blob(object_name)
        blob.upload_from_filename(filename) if filename else blob.upload_from_string(data)

    def download(self, bucket_name: str, object_name: str, filename: str | None = None, **_: Any) -> Any:
        blob = self.get_conn().bucket(bucket_name).blob(object_name)
        if filename is None:
            return blob.download_as_bytes()
        blob.download_to_filename(filename)
        return filename

    def delete(self, bucket_name: str, object_name: str) -> None:
        self.get_conn().bucket(bucket_name).blob(object_name).delete()


class S3Hook:
    """The usual methods, on boto3 with its own credentials."""

    def __init__(self, aws_conn_id: str | None = None, **_: Any) -> None:
        self.aws_conn_id = aws_conn_id

    def get_conn(self) -> Any:
        import boto3

        found = os.environ.get(f"AIRFLOW_CONN_{(self.aws_conn_id or 'aws_default').upper()}")
        if not found:
            return boto3.client("s3")
        given = Connection(self.aws_conn_id or "", found)
        return boto3.client(
            "s3", aws_access_key_id=given.login, aws_secret_access_key=given.password,
            region_name=given.extra_dejson.get("region_name"), endpoint_url=given.extra_dejson.get("endpoint_url"),
        )  # fmt: skip

    def check_for_key(self, key: str, bucket_name: str | None = None) -> bool:
        return bool(self.list_keys(bucket_name or "", prefix=key, max_items=1))

    def list_keys(self, bucket_name: str, prefix: str = "", max_items: int | None = None, **_: Any) -> list[str]:
        pages = self.get_conn().get_paginator("list_objects_v2").paginate(Bucket=bucket_name, Prefix=prefix)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return keys[:max_items] if max_items else keys

    def read_key(self, key: str, bucket_name: str) -> str:
        return self.get_conn().get_object(Bucket=bucket_name, Key=key)["Body"].read().decode()  # type: ignore[no-any-return]

    def get_key(self, key: str, bucket_name: str) -> Any:
        import boto3

        return boto3.resource("s3").Object(bucket_name, key)

    def load_string(self, string_data: str, key: str, bucket_name: str, **_: Any) -> None:
        self.get_conn().put_object(Bucket=bucket_name, Key=key, Body=string_data.encode())

    def load_bytes(self, bytes_data: bytes, key: str, bucket_name: str, **_: Any) -> None:
        self.get_conn().put_object(Bucket=bucket_name, Key=key, Body=bytes_data)

    def load_file(self, filename: str, key: str, bucket_name: str, **_: Any) -> None:
        self.get_conn().upload_file(filename, bucket_name, key)

    def download_file(self, key: str, bucket_name: str, local_path: str | None = None, **_: Any) -> str:
        target = os.path.join(local_path or ".", os.path.basename(key))
        self.get_conn().download_file(bucket_name, key, target)
        return target

    def delete_objects(self, bucket: str, keys: Any) -> None:
        for key in [keys] if isinstance(keys, str) else keys:
            self.get_conn().delete_object(Bucket=bucket, Key=key)


def database_url(url: str) -> str:
    """The connection as a URL of SQLAlchemy."""
    scheme, separator, rest = url.partition("://")
    names = {"postgres": "postgresql", "mysql": "mysql+pymysql", "mssql": "mssql+pymssql", "redshift": "postgresql"}
    return f"{names.get(scheme, scheme)}{separator}{rest}"


def run_http(
    conn_id: str,
    method: str = "POST",
    endpoint: str = "",
    data: Any = None,
    headers: Any = None,
    extra_options: Any = None,
    response_check: Any = None,
    response_filter: Any = None,
) -> Any:
    """Sends a request, checks the response, and returns its text or what the filter makes of it."""
    response = HttpHook(method, conn_id).run(endpoint, data, headers, extra_options)
    if response_check is not None and not response_check(response):
        raise AirflowException("the response check returned False")
    return response_filter(response) if response_filter is not None else response.text


def run_sql(conn_id: str, sql: Any, parameters: Any = None, schema: str | None = None) -> Any:
    """Runs statements with SQLAlchemy in one transaction and returns the rows of the last one."""
    import sqlalchemy

    url = sqlalchemy.engine.make_url(database_url(connection_url(conn_id)))
    engine = sqlalchemy.create_engine(url.set(database=schema) if schema else url)
    rows: list[list[Any]] = []
    with engine.begin() as connection:
        for statement in [sql] if isinstance(sql, str) else sql:
            result = (
                connection.exec_driver_sql(statement, parameters)
                if parameters
                else connection.exec_driver_sql(statement)
            )
            rows = [[_plain(cell) for cell in row] for row in result] if result.returns_rows else []
    return rows


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def sql_true(conn_id: str, sql: str) -> Any:
    rows = run_sql(conn_id, sql)
    return rows[0] if rows and rows[0] and rows[0][0] not in (0, "0", "", None) else None


def s3_key_exists(bucket: str, key: str, conn_id: str | None = None) -> bool | None:
    return True if S3Hook(conn_id).check_for_key(key, bucket) else None


def gcs_object_exists(bucket: str, key: str) -> bool | None:
    import google.cloud.storage as storage

    return True if storage.Client().bucket(bucket).blob(key).exists() else None


def http_succeeds(url: str, headers: dict[str, str] | None = None) -> bool | None:
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(url, headers=headers or {}), timeout=30) as response:
            return True if response.status < 400 else None
    except OSError:
        return None
