from dataclasses import dataclass


@dataclass
class Settings:
    upper: bool = False


class Letters:
    """Repeats a text. Nothing of Ork is needed: the methods are enough."""

    @dataclass
    class TaskConfig:
        text: str
        times: int = 1
        between: str = " "

    def __init__(self, config: Settings) -> None:
        self.upper = config.upper

    def run(self, context, config: TaskConfig, inputs: dict) -> dict:
        text = config.between.join([config.text] * config.times)
        context.log.info("%s: %d letters, %d inputs", context.task_name, len(text), len(inputs))
        return {"text": text.upper() if self.upper else text}

    def stop(self, context) -> None:
        context.log.info("there is nothing to tidy up")
