"""The parts of the deployment experiment, and a small experiment on a real broker."""

import csv
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.control.history import Slot, WorkerSlot
from steelyard.deployment.deployed_strategies import (
    KEY_GROUPING,
    ROUND_ROBIN,
    STRATEGIES,
    Coverage,
    strategy_named,
)
from steelyard.deployment.emulated_machines import ByProcess, Machines
from steelyard.deployment.grid_plan import planned
from steelyard.deployment.grid_settings import GridSettings
from steelyard.deployment.paused_executors import pause_in_turns, slowed
from steelyard.deployment.run_results import (
    Measures,
    ResultTable,
    RunResult,
    SlotSeries,
    slots_until,
)
from steelyard.report.deployment import write_deployment_report
from steelyard.report.deployment_styles import STYLES
from steelyard.report.deployment_summary import summary
from tests.waiting import until


def test_a_random_quarter_of_the_workers_is_slow():
    """The slow workers depend on the seed."""
    setting = GridSettings(workers=24)
    first, second = setting.speeds(1), setting.speeds(2)
    assert (6, 6) == (first.count(0.3), second.count(0.3))
    assert first == setting.speeds(1) != second
    assert {1.0} == set(setting.speeds(1, hetero=False))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"strategies": (KEY_GROUPING,) * 2}, "schemes must not repeat a name, got kg, kg"),
        ({"delays": ()}, "delays must have at least one value"),
        ({"delays": (0.1, -1)}, "delays must be"),
        ({"workers": 1}, "workers must be a whole number"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        GridSettings(**wrong)


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ValueError, match=r"schemes must be one of kg, kg-200, .*; got 'magic'"):
        strategy_named("magic")


def test_every_strategy_has_its_own_names_and_style():
    """Figures can draw every strategy, and no two strategies look the same."""
    names = [strategy.name for strategy in STRATEGIES]
    assert ["kg", "kg-200", "sg", "pkg", "salting", "cg-pull", "cg-delegated"] == names
    assert len(names) == len({s.label for s in STRATEGIES}) == len({s.title for s in STRATEGIES})
    assert names == list(STYLES)
    assert len(names) == len({(style.color, style.marker) for style in STYLES.values()})
    assert STRATEGIES == pickle.loads(pickle.dumps(STRATEGIES))


def test_strategies_keep_their_placements():
    """Only cg-delegated keeps state; only consistent grouping learns."""
    delegated = [strategy.name for strategy in STRATEGIES if strategy.is_delegated]
    assert ["cg-delegated"] == delegated
    assert ["cg-pull", "cg-delegated"] == [s.name for s in STRATEGIES if s.learns]
    assert ["kg-200", "cg-pull"] == [s.name for s in STRATEGIES if s.shares_machines]
    assert ["kg", "sg", "cg-pull", "cg-delegated"] == [s.name for s in STRATEGIES if s.is_quick]


def test_a_folder_accepts_only_comparable_runs(tmp_path):
    """Other delays and strategies are accepted; other clusters and lengths are refused."""
    GridSettings().keep_in(tmp_path / "out")
    GridSettings(delays=(2.0,), repetitions=1, strategies=(KEY_GROUPING,)).keep_in(tmp_path / "out")
    with pytest.raises(ValueError, match=r"other settings \(workers 24, not 4; seconds 25, not 10"):
        GridSettings(workers=4, seconds=10).keep_in(tmp_path / "out")


def test_every_strategy_is_planned_on_every_cluster():
    """Latencies are planned only after the throughput of key grouping."""
    runs = planned(GridSettings(repetitions=2, choices=3), ["tw", "sotu_words"])
    assert len(set(runs)) == len(runs)
    for strategy in STRATEGIES:
        own = [run for run in runs if run.strategy == strategy]
        less = strategy.coverage == Coverage.BASIC
        compared = strategy.coverage == Coverage.FULL
        for hetero, delay, times in (
            ("no", 1, 1 if less else 2),
            ("no", 0.1, 0 if less else 1),
            ("sleep", 1, 3 if compared else 2),
            ("sleep", 0.1, 2 if compared else 1),
        ):
            there = [r for r in own if (r.hetero, r.delay, r.data) == (hetero, delay, "tw")]
            assert times == len([run for run in there if not run.latency])
        slow = [run for run in own if run.latency]
        assert (2 if compared else 1) == len([run for run in slow if run.delay == 1])
        assert ([0.1, 0.3] if compared else []) == [run.delay for run in slow if run.delay < 1]
    assert {run.seed for run in runs if run.strategy.name == "cg-pull"} == {0, 1, 2}
    apart = {run.strategy.name for run in runs if run.hetero == "executors"}
    assert {"kg", "sg", "pkg", "cg-pull", "cg-delegated"} == apart
    one = planned(GridSettings(workers=11), ["tw"])
    assert not any(run.hetero == "executors" for run in one), "one executor cannot be slow"
    assert {"sleep", "changing"} == {
        run.hetero for run in planned(GridSettings(homogeneous=False, thorough=False), ["tw"])
    }
    for number, run in enumerate(runs):
        if run.latency:
            by_key = replace(run, strategy=KEY_GROUPING, latency=False)
            assert by_key in runs[:number]
    assert not any(run.latency for run in planned(GridSettings(strategies=[ROUND_ROBIN]), ["tw"]))


def _slot(number, busy, messages=1000):
    workers = tuple(
        WorkerSlot(w, messages // len(busy), 0.5, b / 10, "normal", 1, 10, None, None, bytes=100)
        for w, b in enumerate(busy)
    )
    own = {"latencies": ((80, messages),), "working": max(busy)}
    return Slot(number, number, 0.0, 10.0, messages, workers, (), (), 1, **own)


def test_measures_of_slots():
    """Throughput has wall-clock time as its base, efficiency the longest busy time."""
    measures = Measures([_slot(1, [8, 4]), _slot(2, [5, 5])], limit=200)
    assert 100 == measures.throughput
    assert 2000 / 13 == measures.working
    assert [1000 / 8 / 200, 1.0] == measures.efficiency
    assert (20, 200) == measures.held
    assert measures.latency(0.99) == pytest.approx(1.12, rel=0.01), "nearly the whole bin"
    assert 1 == slots_until([0.9, 0.9])
    assert 3 == slots_until([0.9, 0.5, 0.9])


def test_results_are_saved(tmp_path):
    """A new table finds the result of a run in the same folder, and no result of other runs."""
    done = RunResult("kg", "pull", 1.0, "sleep", 0, throughput=5.5, limit=10.0, messages=7)
    ResultTable(tmp_path).add(done)
    again = ResultTable(tmp_path)
    assert [done] == again.rows
    assert again.find(RunResult("kg", "pull", 1.0, "sleep", 0)) == done
    assert again.find(RunResult("kg", "pull", 1.0, "sleep", 1)) is None
    assert again.find(RunResult("kg", "pull", 1.0, "sleep", 0, offered=0.0)) is None
    header = (tmp_path / "results.csv").read_text().splitlines()[0]
    expected = "scheme,placement,delay,hetero,seed,throughput,limit,p50,p95,p99,copies,state_bytes"
    assert header.startswith(expected)


def test_a_new_series_replaces_the_old_one_of_its_strategy(tmp_path):
    """The series of other strategies are unchanged."""
    series = SlotSeries(tmp_path)
    series.put("kg", [_slot(1, [8, 4]), _slot(2, [5, 5])], 200)
    series.put("cg-pull", [_slot(1, [5, 5])], 200)
    series.put("kg", [_slot(1, [4, 4])], 200)
    rows = [(row["scheme"], row["slot"], float(row["of_limit_at_work"])) for row in series.rows()]
    assert [("cg-pull", "1", 1.0), ("kg", "1", 1.25)] == rows


def test_the_report_has_medians_ranges_and_figures(tmp_path):
    """Figures are PNG and SVG files, and a page shows all of them."""
    rows = []
    for hetero in ("no", "sleep"):
        for strategy in STRATEGIES:
            for seed, rate in enumerate((100.0, 120.0, 150.0)):
                own = {"throughput": rate, "limit": 200.0, "copies": 1.1, "state_bytes": 1e6}
                own["working"] = rate + (40 if strategy != KEY_GROUPING else 0)
                rows.append(RunResult(strategy.name, "pull", 1.0, hetero, seed, **own))
                rows.append(RunResult(strategy.name, "pull", 0.1, hetero, seed, **own))
            slow = {"p50": 1.0, "p95": 2.0, "p99": 3.0, "offered": 80.0}
            rows += [
                RunResult(strategy.name, "pull", delay, hetero, 0, **slow) for delay in (0.1, 1.0)
            ]
    SlotSeries(tmp_path).put("kg", [_slot(1, [8, 4])], 200)
    SlotSeries(tmp_path).put("cg-pull", [_slot(1, [5, 5])], 200)
    lines = summary(rows)
    assert 4 * len(STRATEGIES) == len(lines)
    assert (120.0, 100.0, 150.0) == (
        lines[0].throughput.middle,
        lines[0].throughput.least,
        lines[0].throughput.most,
    )
    assert ["60%", "60% (50-75%)"] == lines[0].cells()[3:5]
    assert ["60%", "80% (70-95%)"] == lines[1].cells()[3:5]
    assert (1.0, 4 / 3) == (lines[0].against_kg.middle, lines[1].against_kg.middle)
    assert 1.0 == lines[1].clock_against_kg.middle
    assert (200 / 120, 200 / 150) == (
        lines[1].most_against_kg.middle,
        lines[1].most_against_kg.least,
    )
    write_deployment_report(lines, GridSettings(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    for name in ("share", "throughput", "latency", "latency-delays", "changing"):
        assert {f"{name}.png", f"{name}.svg"} <= names
    page = (tmp_path / "report.html").read_text()
    assert 5 == page.count("data:image/png;base64,")
    assert "CG, delegated" in page


def test_with_one_delay_there_is_no_figure_over_delays(tmp_path):
    """The efficiency is still drawn; without results there are no figures."""
    row = RunResult("kg", "pull", 1.0, "sleep", 0, throughput=5.5, limit=10.0, messages=7)
    write_deployment_report(summary([row]), GridSettings(), tmp_path)
    assert {"report.html", "share.png", "share.svg"} == {path.name for path in tmp_path.iterdir()}
    write_deployment_report([], GridSettings(), tmp_path)
    assert "data:image" not in (tmp_path / "report.html").read_text()


@pytest.fixture
def family():
    """Start a process that starts another process."""
    sleep = [sys.executable, "-c", "import time; time.sleep(1000)"]
    start = f"import subprocess; child = subprocess.Popen({sleep}); print(child.pid, flush=True)"
    command = [sys.executable, "-c", f"{start}; child.wait()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        yield [parent.pid, int(parent.stdout.readline())]
        os.killpg(parent.pid, signal.SIGKILL)


def are_paused(processes):
    """Return for each process whether the kernel reports it as stopped."""
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][1] for pid in processes]
    return [state == "T" for state in states]


def test_a_slowed_process_runs_for_its_fraction_of_the_time(family):
    """The processes that it started are slowed too."""
    turns = []

    def wait(seconds):
        is_pause = len(turns) % 2 == 1
        until(lambda: are_paused(family) == [is_pause] * 2)
        turns.append(seconds)
        return len(turns) > 6

    pause_in_turns(family[:1], 0.3, wait)
    assert 7 == len(turns)
    assert 0.3 == pytest.approx(sum(turns[:6:2]) / sum(turns[:6]))


def test_a_slowed_process_runs_afterwards(family):
    """It runs again even after an exception."""

    def fail():
        with slowed(family[:1], 0.3):
            until(lambda: all(are_paused(family)))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    until(lambda: not any(are_paused(family)))


def test_a_new_process_gets_the_number_of_an_ended_one(tmp_path):
    """There are never more machines than processes."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "0").symlink_to(str(gone.pid))
    (tmp_path / "1").symlink_to("1")
    assert 0 == ByProcess(str(tmp_path)).number()
    assert 0 == ByProcess(str(tmp_path)).number()


def test_a_pause_does_not_count_as_work():
    """A machine that may be paused counts only its own sleeps."""
    machines = Machines(service=0.001, speeds=(1.0,), machine_of_task=_First(), may_be_paused=True)
    begin = time.perf_counter()
    machines.work(50, begin)
    assert time.perf_counter() - begin >= 0.045


class _First:
    def number(self):
        return 0


def test_a_finished_folder_is_reported_without_a_broker(tmp_path, monkeypatch):
    """A failure of the broker is one sentence, and the finished results are still reported."""

    def no_broker(*_):
        raise ValueError("no broker here")

    monkeypatch.setattr("steelyard.deployment.broker.running_broker", no_broker)
    arguments = "--workers 4 --messages 20000 --hetero --delays 1 --repetitions 1 --schemes"
    command = ["deploy", "--out", str(tmp_path), *arguments.split()]
    setting = GridSettings(
        workers=4, delays=(1.0,), strategies=(KEY_GROUPING,), repetitions=1, choices=1
    )
    for run in planned(replace(setting, messages=20000, homogeneous=False), ["tw"]):
        ResultTable(tmp_path).add(replace(run.empty_result, throughput=5.0, limit=10.0))
    finished = CliRunner().invoke(app, [*command, "kg"])
    assert finished.exit_code == 0, finished.output
    assert "4 workers, a quarter at 30 % speed" in finished.output
    assert "…" not in finished.output, "the table fits 80 columns"
    assert (tmp_path / "report.html").exists()
    (tmp_path / "report.html").unlink()
    failed = CliRunner().invoke(app, [*command, "kg,sg"])
    assert failed.exit_code != 0
    assert "no broker here" in failed.output
    assert (tmp_path / "report.html").exists()


@pytest.mark.deployment
@pytest.mark.slow
def test_a_small_deployment(tmp_path):
    """The command starts its own broker, and measures latencies, changes and paused executors."""
    arguments = "--workers 4 --messages 20000 --hetero --delays 1 --repetitions 1"
    few = ("kg", "pkg", "sg", "cg-pull", "cg-delegated")
    command = [sys.executable, "-m", "steelyard.cli", "deploy", "--out", str(tmp_path / "out")]
    ran = subprocess.run(
        [*command, *arguments.split(), "--schemes", ",".join(few)],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    by = {(row["scheme"], row["hetero"]): row for row in rows if not row["offered"]}
    for strategy in few:
        row = by[strategy, "sleep"]
        assert 0 < float(row["throughput"]) < float(row["limit"])
        assert float(row["copies"]) >= 0.999
        assert float(row["state_bytes"]) > 0
    assert float(by["kg", "sleep"]["copies"]) == pytest.approx(1)
    copies = {strategy: float(by[strategy, "sleep"]["copies"]) for strategy in few}
    assert copies["sg"] > max(1.1, *(copies[strategy] for strategy in few if strategy != "sg"))
    assert {"kg", "cg-pull", "cg-delegated"} <= {
        strategy for strategy, how in by if how == "executors"
    }
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
