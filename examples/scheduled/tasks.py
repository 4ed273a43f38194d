from datetime import UTC, datetime, timedelta


def collect(scheduled_for=None):
    """A run that a schedule made is for its time, whenever it comes to run; one started by hand is for now."""
    due = datetime.fromisoformat(scheduled_for) if scheduled_for else datetime.now(UTC)
    return {"day": (due - timedelta(days=1)).date().isoformat(), "sold": 42}


def publish(report, fail=False):
    if fail:
        raise RuntimeError("the printer is on fire")
    return f"{report['sold']} sold on {report['day']}"
