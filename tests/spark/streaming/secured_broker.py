"""A broker with a second listener that asks for a user and a password."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.ports import free_port
from tests.spark.streaming.on_kafka import kafka
from tests.waiting import until

USER, PASSWORD = "grouping", "swordfish-4711"

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{PASSWORD}";'
)

_SECURED = """
listeners={listeners},SECURED://127.0.0.1:{port}
advertised.listeners={advertised},SECURED://127.0.0.1:{port}
listener.security.protocol.map={protocols},SECURED:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
"""


@contextmanager
def secured_broker(folder, *topics):
    """Start a broker with these topics, and yield the address of its secured listener."""
    where = ("--folder", str(folder))
    kafka("start", *where, "--port", str(free_port()))
    for topic in topics:
        kafka("topic", topic, *where)
    pid = (folder / "pid").read_text()
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().strip("\0").split("\0")
    kafka("stop", *where)
    port = free_port()
    properties = folder / "server.properties"
    lines = (line.partition("=") for line in properties.read_text().splitlines())
    before = {name: value for name, _, value in lines}
    added = _SECURED.format(
        listeners=before["listeners"],
        advertised=before["advertised.listeners"],
        protocols=before["listener.security.protocol.map"],
        port=port,
        user=USER,
        password=PASSWORD,
    )
    properties.write_text(properties.read_text() + added)
    with (folder / "secured.log").open("wb") as log:
        broker = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        text = (folder / "secured.log").read_text
        until(lambda: "Kafka Server started" in text(), lambda: _require(broker, text))
        yield f"127.0.0.1:{port}"
    finally:
        broker.terminate()
        broker.wait()


def _require(broker, text):
    assert broker.poll() is None, text()[-2000:]


def settings(servers):
    """Return the settings of a client that knows the password."""
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }


def send(servers, topic, keys):
    """Send a message for each key."""
    producer = Producer(settings(servers))
    for key in keys:
        producer.produce(topic, key=key, value=b"x")
    assert producer.flush(60) == 0


def received(servers, topic, is_enough):
    """Return the newest value of each key, once these are enough."""
    consumer = Consumer({**settings(servers), "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    newest = {}

    def read():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            newest[message.key().decode()] = message.value().decode()
        return is_enough(newest)

    until(read)
    consumer.close()
    return newest
