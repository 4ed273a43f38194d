"""What the worker knows."""

import os

from celery import Celery

app = Celery("work", broker=os.environ["PEER_REDIS"], backend=os.environ["PEER_REDIS"])
app.conf.worker_prefetch_multiplier = 16


@app.task
def light(_before=None):
    return 1
