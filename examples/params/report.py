from datetime import date


def main(day: date, regions: list, limit: int, dry_run: bool) -> dict:
    weekday = day.strftime("%A")
    return {"title": f"{weekday} {day:%d.%m.%Y}", "regions": regions[:limit], "written": not dry_run}
