"""Sessions for commands: join what runs, stop only what was started."""

from threading import Thread

from steelyard.spark.session import parallelism, session


def test_a_running_session_is_joined_and_left_running(spark):
    """From this thread, and from another, which has no active session of its own."""
    joined = []

    def work():
        with session("test") as found:
            joined.append(found)

    work()
    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert [spark, spark] == joined
    assert spark.range(3).count() == 3


def test_parallelism_is_the_number_of_slots(spark):
    """Two cores here."""
    assert parallelism(spark) == 2
