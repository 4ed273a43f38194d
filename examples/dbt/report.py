import duckdb


def main() -> dict[str, int]:
    with duckdb.connect("warehouse.duckdb", read_only=True) as database:
        return dict(database.sql("select name, total from customers order by name").fetchall())
