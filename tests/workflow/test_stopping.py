"""A run that a scheduler or `timeout` ends."""

import subprocess
import sys

STOPPED = """
import os, signal, threading, time
from snakemake.scheduling.job_scheduler import JobScheduler
from actionspan.workflow.jobs import stop_from_a_thread

stop_from_a_thread()
scheduler = object.__new__(JobScheduler)
scheduler._lock, scheduler._open_jobs = threading.Lock(), threading.Semaphore(0)
signal.signal(signal.SIGTERM, scheduler.exit_gracefully)
with scheduler._lock:  # as while the outputs of a job are looked at
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)
assert scheduler._open_jobs.acquire(timeout=10)
print(scheduler._user_kill)
"""


def test_a_signal_stops_a_run_whatever_its_scheduler_is_doing():
    code = f"import faulthandler; faulthandler.dump_traceback_later(30, exit=True)\n{STOPPED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "graceful\n"), done.stderr
