"""queueduct.queues(): what is listed, whatever else is in the directory or happens there."""

import os

import queueduct
from queueduct import BoundedQueue


def test_the_list_of_queues_passes_over_what_is_none(queue_dir):
    BoundedQueue.create("b", 4)
    BoundedQueue.create("a", 4)
    (queue_dir / "text").write_text("hello")
    (queue_dir / "empty").write_bytes(b"")
    (queue_dir / ".hidden").write_bytes((queue_dir / "a").read_bytes())
    (queue_dir / "folder").mkdir()
    (queue_dir / "link").symlink_to("a")
    (queue_dir / "dangling").symlink_to("nowhere")
    os.mkfifo(queue_dir / "fifo")
    assert [info[:2] for info in queueduct.queues()] == [("a", "bounded"), ("b", "bounded")]


def test_the_list_of_queues_survives_queues_that_come_and_go(children):
    child = children.start(
        """
import queueduct
for i in range(300):
    queueduct.BoundedQueue.create(f"q{i % 7}", 4).unlink()
"""
    )
    while child.poll() is None:
        assert all(kind == "bounded" for _, kind, *_ in queueduct.queues())
    assert child.communicate()[1] == ""
