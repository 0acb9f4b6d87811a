from datetime import datetime

from queueduct.stats import ParticipantInfo

class ParticipantMethods:
    """What every queue says of its making and its participants."""

    @property
    def created(self) -> datetime | None: ...
    @property
    def creator(self) -> int | None: ...
    def participants(self, *, commands: bool = True) -> list[ParticipantInfo]: ...
