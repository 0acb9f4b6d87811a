"""Every kind of queue by its name."""

from __future__ import annotations

from penstock.bounded_geometry import BoundedGeometry
from penstock.events_geometry import EventsGeometry
from penstock.geometry import Geometry
from penstock.slots_geometry import SlotsGeometry

__all__ = ["GEOMETRIES"]

GEOMETRIES: dict[str, type[Geometry]] = {each.kind: each for each in (BoundedGeometry, EventsGeometry, SlotsGeometry)}
