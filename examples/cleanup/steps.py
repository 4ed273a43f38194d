from ork import Context


def reserve() -> str:
    return "machine-7"


def work(reserve: str) -> None:
    raise RuntimeError(f"{reserve} is on fire")


def release(reserve: str, work: object, ctx: Context) -> dict:
    return {"released": reserve, "result": work, "failed": ctx.failed, "states": ctx.upstream_states}
