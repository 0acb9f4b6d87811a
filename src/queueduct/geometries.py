"""Every kind of queue by its name."""

from __future__ import annotations

from queueduct.bounded_geometry import BoundedGeometry
from queueduct.events_geometry import EventsGeometry
from queueduct.geometry import Geometry
from queueduct.growing_geometry import GrowingGeometry
from queueduct.overwriting_geometry import OverwritingGeometry
from queueduct.slots_geometry import SlotsGeometry

__all__ = ["GEOMETRIES"]

KINDS: tuple[type[Geometry], ...] = (
    BoundedGeometry,
    EventsGeometry,
    GrowingGeometry,
    OverwritingGeometry,
    SlotsGeometry,
)
GEOMETRIES = {each.kind: each for each in KINDS}
