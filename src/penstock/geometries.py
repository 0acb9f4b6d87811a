"""Every kind of queue by its name."""

from __future__ import annotations

from penstock.bounded_geometry import BoundedGeometry
from penstock.events_geometry import EventsGeometry
from penstock.geometry import Geometry
from penstock.growing_geometry import GrowingGeometry
from penstock.overwriting_geometry import OverwritingGeometry
from penstock.slots_geometry import SlotsGeometry

__all__ = ["GEOMETRIES"]

KINDS: tuple[type[Geometry], ...] = (
    BoundedGeometry,
    EventsGeometry,
    GrowingGeometry,
    OverwritingGeometry,
    SlotsGeometry,
)
GEOMETRIES = {each.kind: each for each in KINDS}
