"""The class of each kind, by its name: what a test of all kinds is parametrised with."""

from queueduct.segments.kinds import KINDS

CLASSES = {name: kind.queue_class for name, kind in KINDS.items()}
