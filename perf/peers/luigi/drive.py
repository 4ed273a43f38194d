"""Luigi with its local scheduler: a forked process for each task, a file that says it is done."""

import os
import sys
import time

import luigi


class Link(luigi.Task):
    number = luigi.IntParameter()
    folder = luigi.Parameter()

    def requires(self):
        return [Link(number=self.number - 1, folder=self.folder)] if self.number else []

    def output(self):
        return luigi.LocalTarget(os.path.join(self.folder, f"link-{self.number}"))

    def run(self):
        with self.output().open("w") as file:
            file.write("1")


class Leaf(Link):
    def requires(self):
        return []


def main():
    work, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    tasks = [Link(count - 1, folder)] if work == "chain" else [Leaf(number, folder) for number in range(count)]
    workers = 1 if work == "chain" else 4
    luigi.configuration.get_config().set("worker", "force_multiprocessing", "true")
    begin = time.perf_counter()
    done = luigi.build(tasks, local_scheduler=True, workers=workers, log_level="ERROR")
    print("seconds", time.perf_counter() - begin)
    assert done
    assert len(os.listdir(folder)) == count


if __name__ == "__main__":
    main()
