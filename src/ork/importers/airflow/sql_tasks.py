"""SQL operators: `executor: sql` for SQLite and Postgres, else a function with SQLAlchemy."""

from __future__ import annotations

import re
from typing import Any

from ork.importers.airflow.arguments import ArgumentCode
from ork.importers.airflow.dag_builder import HOOKS, DagBuilder
from ork.importers.airflow.objects import Operator
from ork.importers.airflow.python_tasks import _write_wrapper
from ork.importers.airflow.templates import TemplateError, has_template, pieces_of
from ork.importers.project import ImportedTask, Untranslatable, identifier
from ork.importers.python.values import is_known
from ork.importers.yaml_text import literal

# The class, the argument with the connection, its default, and the driver for SQLAlchemy ("" if Ork has its own).
SQL_KINDS: dict[str, tuple[str, str, str]] = {
    "PostgresOperator": ("postgres_conn_id", "postgres_default", ""),
    "SqliteOperator": ("sqlite_conn_id", "sqlite_default", ""),
    "RedshiftSQLOperator": ("redshift_conn_id", "redshift_default", ""),
    "MySqlOperator": ("mysql_conn_id", "mysql_default", "pymysql"),
    "MsSqlOperator": ("mssql_conn_id", "mssql_default", "pymssql"),
    "OracleOperator": ("oracle_conn_id", "oracle_default", "oracledb"),
    "SnowflakeOperator": ("snowflake_conn_id", "snowflake_default", "snowflake-sqlalchemy"),
    "SnowflakeSqlApiOperator": ("snowflake_conn_id", "snowflake_default", "snowflake-sqlalchemy"),
    "TrinoOperator": ("trino_conn_id", "trino_default", "trino[sqlalchemy]"),
    "VerticaOperator": ("vertica_conn_id", "vertica_default", "sqlalchemy-vertica-python"),
    "ClickHouseOperator": ("clickhouse_conn_id", "clickhouse_default", "clickhouse-sqlalchemy"),
    "BigQueryExecuteQueryOperator": ("gcp_conn_id", "google_cloud_default", "sqlalchemy-bigquery"),
    "SQLExecuteQueryOperator": ("conn_id", "", "any"),
    "JdbcOperator": ("jdbc_conn_id", "jdbc_default", "any"),
}
_ALIASES = ("conn_id", "postgres_conn_id", "mysql_conn_id", "mssql_conn_id", "sqlite_conn_id", "redshift_conn_id")


def sql_task(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    argument, default, driver = SQL_KINDS[operator.kind]
    given = operator.keywords
    conn = operator.get(argument) or next((operator.get(name) for name in _ALIASES if operator.get(name)), default)
    if not isinstance(conn, str) or not conn or "{{" in conn:
        raise Untranslatable("its connection is known only when the file is run")
    if operator.mapped is not None:
        raise Untranslatable("it is mapped over queries")
    sql = given.get("sql")
    sql = [_text(each, builder) for each in sql] if isinstance(sql, list | tuple) else _text(sql, builder)
    if driver == "any":
        driver = "" if re.search(r"postgres|pg_|_pg|^pg|sqlite|redshift|psql", conn, re.I) else "SQLAlchemy"
    if driver == "" and not given.get("database") and _with_executor(sql, conn, operator, task, builder):
        return
    _with_sqlalchemy(sql, conn, driver or "psycopg2-binary", operator, task, builder)


def _text(sql: Any, builder: DagBuilder) -> Any:
    from ork.importers.airflow.words import builder_file

    if sql is None:
        raise Untranslatable("it has no query")
    if not isinstance(sql, str):
        return sql
    if not re.fullmatch(r"[\w./{}\s-]+\.sql", sql.strip()) or "\n" in sql.strip():
        return sql
    name = sql.strip()
    found = None if "{{" in name else builder_file(name, builder)
    if found is None:
        raise Untranslatable(f"its file `{name}` was not found")
    return found


def _with_executor(sql: Any, conn: str, operator: Operator, task: ImportedTask, builder: DagBuilder) -> bool:
    """Writes a task of `executor: sql`. False if its templates or parameters need another way."""
    parameters = operator.keywords.get("parameters")
    if parameters not in (None, {}, []) and not (isinstance(parameters, dict) and is_known(parameters)):
        return False
    statements = sql if isinstance(sql, list) else [sql]
    if not all(isinstance(each, str) for each in statements):
        return False
    text = ";\n".join(each.strip().rstrip(";") for each in statements)
    inputs: dict[str, Any] = {}
    if isinstance(parameters, dict):
        if any(has_template(value) for value in parameters.values()):
            return False
        inputs = {name: literal(value) for name, value in parameters.items()}
        text = re.sub(r"%\((\w+)\)s", r":\1", text)
    elif re.search(r"(?<![:\w]):[A-Za-z_]\w*", re.sub(r"'[^']*'", "", text).replace("::", "")):
        return False
    bound = _bound(text, operator, builder, inputs)
    if bound is None:
        return False
    text, inputs = bound
    is_script = len(_statements(text)) > 1
    if is_script and inputs:
        return False
    secret = builder.connection_secret(conn)
    builder.project.secrets[secret] = f"the Airflow connection `{conn}` as a URL: postgresql://user:password@host/name"
    name = identifier(conn)
    builder.project.executors[name] = {"class": "sql", "config": {"url": {"secret": secret}}}
    config: dict[str, Any] = {"query": literal(text.replace("%%", "%") if "%%" in text else text)}
    if is_script or not re.match(r"\s*(--.*\n\s*)*(select|with|values|show)\b", text, re.I):
        config["fetch"] = "none"
    task.keys["executor"], task.keys["config"] = name, config
    if inputs:
        task.keys["inputs"] = inputs
    return True


def _statements(text: str) -> list[str]:
    plain = re.sub(r"--[^\n]*|/\*.*?\*/", "", re.sub(r"\$(\w*)\$.*?\$\1\$|'[^']*'", "''", text, flags=re.S), flags=re.S)
    return [each for each in plain.split(";") if each.strip()]


def _bound(
    text: str, operator: Operator, builder: DagBuilder, inputs: dict[str, Any]
) -> tuple[str, dict[str, Any]] | None:
    """The query with bound parameters in place of quoted templates. None if a template is not a whole quoted value."""
    try:
        parts = pieces_of(text, operator, builder)
    except TemplateError as error:
        raise Untranslatable(str(error)) from error
    inputs = dict(inputs)
    found = ""
    for index, part in enumerate(parts):
        if isinstance(part, str) or part.const is not None:
            found += part if isinstance(part, str) else part.const or ""
            continue
        following = parts[index + 1] if index + 1 < len(parts) else ""
        is_quoted = (
            found.endswith("'")
            and not found.endswith("''")
            and isinstance(following, str)
            and following.startswith("'")
        )
        if not is_quoted or not (part.ref or part.python is not None):
            return None
        ref = part.ref
        if ref is None:
            arguments = ArgumentCode(operator, builder)
            code = arguments._piece(part)
            if arguments.inputs:
                return None
            ref = builder.value_ref(part.name, code)
        name = identifier(part.name).strip("_") or "value"
        inputs[name] = {"ref": ref}
        found = f"{found[:-1]}:{name}"
        parts[index + 1] = following[1:] if isinstance(following, str) else following
    return found, inputs


def _with_sqlalchemy(
    sql: Any, conn: str, driver: str, operator: Operator, task: ImportedTask, builder: DagBuilder
) -> None:
    builder.connection_secret(conn, operator.task_id)
    builder.project.requirements |= {"SQLAlchemy", driver}
    arguments = ArgumentCode(operator, builder)
    codes = [repr(conn), arguments.code(sql)]
    if operator.keywords.get("parameters"):
        codes.append(arguments.code(operator.keywords["parameters"]))
    schema = operator.keywords.get("database") or operator.keywords.get("schema")
    if schema:
        codes.append(f"schema={arguments.code(schema)}")
    builder.module.add_import(f"from {HOOKS} import run_sql")
    builder.module.uses_replacements = True
    _write_wrapper(operator, task, builder, arguments, "run_sql", codes, "{0}")
