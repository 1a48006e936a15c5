"""A Spark standalone cluster on this machine: a master and workers as processes.

Workers can be added, killed and decommissioned while jobs run. Every process is stopped by its
process group when the `with` block ends.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.waiting import until

HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}


class StandaloneCluster:
    """A master and `workers` workers, each with `cores` task slots.

    Each worker has its own loopback address, so that Spark takes it for another host: a speculative
    copy never runs on the host of the first attempt.

    Args:
        folder: Where logs and the files of executors go.
        workers: Workers to start with.
        cores: Task slots of each worker.
        settings: Spark settings of master and workers.
    """

    def __init__(self, folder, workers=2, cores=1, settings=None):
        self._folder, self._cores = Path(folder), cores
        self._first_workers = workers
        self._settings = settings or {}
        self._processes = []
        self.workers = []
        self.url = None

    def __enter__(self):
        try:
            self._start_master()
            for _ in range(self._first_workers):
                self.add_worker()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def add_worker(self):
        """Start a worker and wait until the master knows it."""
        number = len(self.workers)
        work = self._folder / f"work-{number}"
        options = ["--cores", str(self._cores), "--memory", "2g", "--work-dir", str(work)]
        started, _ = self._start(
            f"worker-{number}",
            f"127.0.0.{number + 2}",
            "org.apache.spark.deploy.worker.Worker",
            "Successfully registered with master",
            *options,
            self.url,
        )
        self.workers.append(started)

    def kill_worker(self, number):
        """Kill a worker and its executors at once."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()

    def decommission_worker(self, number):
        """Ask a worker to leave: Spark moves its blocks away and gives it no more tasks."""
        os.kill(self.workers[number].pid, signal.SIGPWR)

    def submit(
        self,
        program,
        *arguments,
        settings=None,
        python=sys.executable,
        driver=sys.executable,
        path="",
        more=(),
    ):
        """Start `spark-submit` in its own process group; the output goes to submit.log.

        Args:
            program: The Python file to run.
            arguments: Its arguments.
            settings: Spark settings.
            python: The Python of the executors.
            driver: The Python of the driver.
            path: The PYTHONPATH of the driver.
            more: Further options of `spark-submit`.
        """
        given = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.log.level": "WARN",
            **(settings or {}),
        }
        confs = [part for key, value in given.items() for part in ("--conf", f"{key}={value}")]
        command = [HOME / "bin" / "spark-submit", "--master", self.url, *confs, *more, program]
        env = {**os.environ, **ENVIRONMENT, "PYSPARK_PYTHON": str(python)}
        env |= {"PYSPARK_DRIVER_PYTHON": str(driver), "PYTHONPATH": str(path)}
        return self._run("submit", [*command, *arguments], env)

    @property
    def log(self):
        """The end of the output of the last job."""
        return (self._folder / "submit.log").read_text(errors="replace")[-4000:]

    def _start_master(self):
        _, found = self._start(
            "master",
            "127.0.0.1",
            "org.apache.spark.deploy.master.Master",
            r"Starting Spark master at (spark://127\.0\.0\.1:\d+)",
        )
        self.url = found[1]

    def _start(self, name, host, main, ready, *options):
        """Start a daemon and wait for a line of its log."""
        java = " ".join(f"-D{key}={value}" for key, value in self._settings.items())
        env = {**os.environ, **ENVIRONMENT, "SPARK_LOCAL_IP": host, "PYTHONPATH": ""}
        env |= {"SPARK_MASTER_OPTS": java, "SPARK_WORKER_OPTS": java}
        addresses = ["--host", host, "--port", "0", "--webui-port", "0"]
        process = self._run(name, [HOME / "bin" / "spark-class", main, *addresses, *options], env)
        log = self._folder / f"{name}.log"

        def check():
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]

        return process, until(lambda: re.search(ready, log.read_text(errors="replace")), check)

    def _run(self, name, command, env):
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(part) for part in command],
                env=env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                start_new_session=True,
            )
        self._processes.append(process)
        return process
