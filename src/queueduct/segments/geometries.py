"""Every kind of queue by its name."""

from __future__ import annotations

from queueduct.events.geometry import EventsGeometry
from queueduct.overwriting.geometry import OverwritingGeometry
from queueduct.rings.bounded_geometry import BoundedGeometry
from queueduct.rings.growing_geometry import GrowingGeometry
from queueduct.segments.geometry import Geometry
from queueduct.slots.geometry import SlotsGeometry

__all__ = ["GEOMETRIES"]

KINDS: tuple[type[Geometry], ...] = (
    BoundedGeometry,
    EventsGeometry,
    GrowingGeometry,
    OverwritingGeometry,
    SlotsGeometry,
)
GEOMETRIES = {each.kind: each for each in KINDS}
