import duckdb


def main() -> dict[str, int]:
    with duckdb.connect("library.duckdb", read_only=True) as database:
        return dict(database.sql("select member, pages from members order by member").fetchall())
