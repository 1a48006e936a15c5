"""The deployment experiment: its parts, and a small one on a real broker."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.control.history import Slot, WorkerSlot
from steelyard.report.deployment import summary, write_report
from steelyard.spark.deployment.executors import slowed
from steelyard.spark.deployment.experiment import planned
from steelyard.spark.deployment.outcomes import Measures, Outcome, Table, slots_until
from steelyard.spark.deployment.settings import WAYS, Setting
from steelyard.spark.machines import ByProcess, Machines


def test_a_quarter_is_slow_and_drawn_anew():
    """The same for a seed, others for another one."""
    setting = Setting(workers=24)
    first, second = setting.speeds(1), setting.speeds(2)
    assert (6, 6) == (first.count(0.3), second.count(0.3))
    assert first == setting.speeds(1) != second
    assert {1.0} == set(setting.speeds(1, hetero=False))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"ways": ("kg", "magic")}, "schemes: 'magic' is none of kg, kg-200"),
        ({"delays": ()}, "delays: at least one is needed"),
        ({"delays": (0.1, -1)}, "delays must be"),
        ({"workers": 1}, "workers must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused(wrong, sentence):
    """In one sentence."""
    with pytest.raises(ValueError, match=sentence):
        Setting(**wrong)


def test_every_way_is_planned_on_every_cluster():
    """As often as was asked; latencies only where key grouping was measured before."""
    runs = planned(Setting(repetitions=2, choices=3), ["tw", "sotu_words"])
    assert len(set(runs)) == len(runs)
    for way in WAYS:
        own = [run for run in runs if run.way == way]
        assert 2 == len([run for run in own if run.hetero == "no"])
        assert 2 == len([run for run in own if run.latency])
    assert {run.seed for run in runs if run.way == "cg-pull"} == {0, 1, 2}
    assert {"kg", "cg-pull", "cg-delegated"} == {r.way for r in runs if r.hetero == "executors"}
    for number, run in enumerate(runs):
        if run.latency:
            before = [r for r in runs[:number] if r.way == "kg" and r.seed == run.seed]
            assert any(r.hetero == "sleep" and not r.latency for r in before)
    assert not any(run.latency for run in planned(Setting(ways=["sg"]), ["tw"]))


def _slot(number, busy, messages=1000):
    workers = tuple(
        WorkerSlot(w, messages // len(busy), 0.5, b / 10, "normal", 1, 10, None, None, bytes=100)
        for w, b in enumerate(busy)
    )
    own = {"latencies": ((80, messages),), "working": max(busy)}
    return Slot(number, number, 0.0, 10.0, messages, workers, (), (), 1, **own)


def test_measures_of_slots():
    """By the clock, and while the busiest is busy."""
    told = Measures([_slot(1, [8, 4]), _slot(2, [5, 5])], limit=200)
    assert 100 == told.throughput
    assert 2000 / 13 == told.working
    assert [1000 / 8 / 200, 1.0] == told.used
    assert (20, 200) == told.held
    assert told.latency(0.99) == pytest.approx(1.06, rel=0.01)
    assert 1 == slots_until([0.9, 0.9])
    assert 3 == slots_until([0.9, 0.5, 0.9])


def test_what_was_measured_is_kept(tmp_path):
    """A row is there after it was added; the same run is found again, another one is not."""
    done = Outcome("kg", "pull", 1.0, "sleep", 0, throughput=5.5, limit=10.0, messages=7)
    Table(tmp_path).add(done)
    again = Table(tmp_path)
    assert [done] == again.rows
    assert again.find(Outcome("kg", "pull", 1.0, "sleep", 0)) == done
    assert again.find(Outcome("kg", "pull", 1.0, "sleep", 1)) is None
    assert again.find(Outcome("kg", "pull", 1.0, "sleep", 0, offered=0.0)) is None
    header = (tmp_path / "results.csv").read_text().splitlines()[0]
    asked = "scheme,placement,delay,hetero,seed,throughput,limit,p50,p95,p99,copies,state_bytes"
    assert header.startswith(asked)


def test_the_report_of_some_rows(tmp_path):
    """Medians and ranges; figures as pictures and as drawings, and a page with all of them."""
    rows = []
    for hetero in ("no", "sleep"):
        for way in WAYS:
            for seed, rate in enumerate((100.0, 120.0, 150.0)):
                own = {"throughput": rate, "limit": 200.0, "copies": 1.1, "state_bytes": 1e6}
                own["working"] = rate + 40
                rows.append(Outcome(way, "pull", 1.0, hetero, seed, **own))
            rows.append(
                Outcome(way, "pull", 1.0, hetero, 0, p50=1.0, p95=2.0, p99=3.0, offered=80.0)
            )
    (tmp_path / "series.csv").write_text("kg,1,10,0.2,0.3\ncg-pull,1,10,0.8,0.9\n")
    lines = summary(rows)
    assert 2 * len(WAYS) == len(lines)
    assert (120.0, 100.0, 150.0) == (
        lines[0].throughput.middle,
        lines[0].throughput.least,
        lines[0].throughput.most,
    )
    assert ["60%", "80% (70%-95%)"] == lines[0].cells()[4:6]
    write_report(lines, Setting(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    for name in ("throughput", "latency", "changing"):
        assert {f"{name}.png", f"{name}.svg"} <= names
    page = (tmp_path / "report.html").read_text()
    assert 3 == page.count("data:image/png;base64,")
    assert "CG, delegated" in page


def test_a_slowed_process_gets_its_part_of_the_time(tmp_path):
    """And all that it has started; afterwards it runs as before."""
    count = f"""
import time
with open({str(tmp_path / "ticks")!r}, "w") as ticks:
    while True:
        time.sleep(0.005)
        print(file=ticks, flush=True)
"""
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {count!r}])"
    parent = subprocess.Popen([sys.executable, "-c", start], start_new_session=True)
    ticks = tmp_path / "ticks"

    def counted(seconds):
        before = ticks.stat().st_size
        time.sleep(seconds)
        return ticks.stat().st_size - before

    try:
        while not ticks.exists():
            time.sleep(0.05)
        with slowed([parent.pid], 0.3):
            slow = counted(4)
        assert 0.15 < slow / counted(4) < 0.5
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


def test_the_place_of_a_process_that_is_gone_is_taken(tmp_path):
    """So that there are never more machines than processes."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "0").symlink_to(str(gone.pid))
    (tmp_path / "1").symlink_to("1")
    assert 0 == ByProcess(str(tmp_path)).number()
    assert 0 == ByProcess(str(tmp_path)).number()


def test_a_pause_is_no_work():
    """Whoever may be paused counts only what it slept in quanta."""
    machines = Machines(service=0.001, speeds=(1.0,), place=_First(), may_be_paused=True)
    begin = time.perf_counter()
    machines.work(50, begin)
    assert time.perf_counter() - begin >= 0.045


class _First:
    def number(self):
        return 0


@pytest.mark.deployment
@pytest.mark.slow
def test_a_small_deployment(tmp_path):
    """From the command line, on a broker of its own: latencies, changes, paused executors."""
    arguments = "--workers 4 --messages 20000 --hetero --delays 1 --repetitions 1"
    few = ("kg", "pkg", "sg", "cg-pull", "cg-delegated")
    command = [sys.executable, "-m", "steelyard.cli", "deploy", "--out", str(tmp_path / "out")]
    ran = subprocess.run(
        [*command, *arguments.split(), "--schemes", ",".join(few)],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    by = {(row["scheme"], row["hetero"]): row for row in rows if not row["offered"]}
    for way in few:
        row = by[way, "sleep"]
        assert 0 < float(row["throughput"]) < float(row["limit"])
        assert float(row["copies"]) >= 0.999
        assert float(row["state_bytes"]) > 0
    assert float(by["kg", "sleep"]["copies"]) == pytest.approx(1)
    assert float(by["sg", "sleep"]["copies"]) > 1.3
    assert {"kg", "cg-pull", "cg-delegated"} <= {way for way, how in by if how == "executors"}
    latencies = [row for row in rows if row["offered"]]
    assert len(latencies) == len(few)
    for row in latencies:
        assert 0 < float(row["p50"]) <= float(row["p95"]) <= float(row["p99"]) < 60
    assert (tmp_path / "out" / "report.html").exists()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _is_broker(path, tmp_path)]


def _is_broker(path, folder):
    try:
        return b"kafka.Kafka" in path.read_bytes() and str(folder).encode() in path.read_bytes()
    except OSError:
        return False
