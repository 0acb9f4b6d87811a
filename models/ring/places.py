"""Sets of places, for recoverers.

A place is one side of one position, as a bit: 2 * position for push, the next one for pop.
A set is one integer, so that equal sets make equal states.
"""

from __future__ import annotations

from models.ring.rules import POSITIONS_MAX
from models.ring.words import POP, PUSH, Intent, Side, is_free, position_of
from models.ring.world import World

_EVERY_PUSH = sum(1 << 2 * position for position in range(POSITIONS_MAX))
_EVERY_POP = sum(2 << 2 * position for position in range(POSITIONS_MAX))
EVERY_PLACE = _EVERY_PUSH | _EVERY_POP


def places_claimed(push_position: int, pop_position: int) -> int:
    pushes = _EVERY_PUSH & (1 << 2 * push_position) - 1
    pops = _EVERY_POP & (1 << 2 * pop_position) - 1
    return pushes | pops


def places_covered(intent: Intent) -> int:
    every = _EVERY_PUSH if intent.side == PUSH else _EVERY_POP
    return (every & (1 << 2 * intent.slots) - 1) << 2 * intent.position


def first_place(places: int) -> tuple[Side, int]:
    bit = (places & -places).bit_length() - 1
    return POP if bit & 1 else PUSH, bit >> 1


def without_settled(world: World, places: int) -> int:
    """The places that can still be treated.

    A push that was published, or a pop that was released, is settled for ever,
    because a slot's generation only rises; treating it would read, compare and change nothing.
    To forget it at once removes states in which nothing but a recoverer's registers differ.
    The argument needs the compare: a recoverer that stores blindly keeps all its places.
    """
    if world.configuration.is_exact or not world.rules.recoverer_compares_on_tombstone:
        return places
    remaining = places
    while remaining:
        place = remaining & -remaining
        remaining ^= place
        side, position = first_place(place)
        generation = world.memory.generation(position)
        if position_of(generation) > position or (
            side == PUSH and position_of(generation) == position and not is_free(generation)
        ):
            places ^= place
    return places
