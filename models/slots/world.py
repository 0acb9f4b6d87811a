"""What a participant can see when it takes a step."""

from __future__ import annotations

from models.core import participant
from models.core.participant import DEAD, FINISHED, PromiseBroken
from models.slots.memory import ARRIVING, FREE, LEAVING, NOBODY, STRAY, TAKEN, Memory, Word
from models.slots.rules import Configuration

Step = participant.Step["World", "Outcome"]
Outcome = tuple[Memory, Step]


SHARED = "shared"
DOUBLED = "doubled"
LOST = "lost"
CORRUPT = "corrupt"
MISCOUNTED = "miscounted"


class World:
    """The memory, and the oracles: which participants are dead, and whether all work is done."""

    __slots__ = ("configuration", "memory", "rules", "steps")

    def __init__(self, configuration: Configuration, memory: Memory, steps: tuple[Step, ...]) -> None:
        self.configuration = configuration
        self.rules = configuration.rules
        self.memory = memory
        self.steps = steps

    def is_dead(self, participant: int) -> bool:
        return participant != NOBODY and self.steps[participant] is DEAD

    def producers_are_done(self) -> bool:
        return all(step is DEAD or step is FINISHED for step in self.steps[: self.configuration.producers])

    def recovery_could_act(self) -> bool:
        """Without a word of the dead and without a stray, recovery only reads: it is left out then."""
        return any(self.is_dead(word.owner) or word.state == STRAY for word in self.memory.words)

    def is_quiet(self) -> bool:
        """All slots are free and in the queue of free ones, each once."""
        memory = self.memory
        return (
            all(word.state == FREE for word in memory.words)
            and sorted(memory.free.inside()) == list(range(memory.free.n))
            and not memory.used.inside()
        )

    def next_word(self, word: Word, state: str, owner: int = NOBODY) -> Word:
        return Word(state, owner, word.generation + self.rules.words_have_generations)

    def swapped(self, slot: int, word: Word, state: str, owner: int = NOBODY) -> tuple[Memory, Word] | None:
        """A compare-and-swap of a word. Returns None if the word has changed."""
        if self.memory.words[slot] != word:
            return None
        following = self.next_word(word, state, owner)
        memory = self.memory.with_word(slot, following)
        if state == TAKEN:
            memory = memory.with_handed(slot, memory.handed[slot] + 1)
        if state == ARRIVING and self.rules.arrival_is_noted_first:  # by its owner, before the swap
            memory = memory.with_arrival(slot, following.generation)
        if state == LEAVING:  # nothing reads them any more
            memory = memory.with_arrival(slot, 0).with_handed(slot, 0)
        return memory, following

    def check_deliveries(self, slot: int, word: Word) -> None:
        """What a consumer is told of the item that it has taken is how often that was done."""
        if not self.rules.words_have_generations:
            return
        told = (word.generation - self.memory.arrivals[slot] + 1) // 2
        if told != self.memory.handed[slot]:
            raise PromiseBroken(MISCOUNTED, f"delivery {self.memory.handed[slot]} of slot {slot} is called {told}")


def ended(memory: Memory, item: int) -> Memory:
    """The item is out of the queue, by a get or an eviction."""
    if memory.ended >> item & 1:
        raise PromiseBroken(DOUBLED, f"item {item} came twice")
    if not memory.published >> item & 1:
        raise PromiseBroken(SHARED, f"item {item} came before it was put")
    return memory._replace(ended=memory.ended | 1 << item)


def require_mine(world: World, slot: int, word: Word) -> None:
    """A live participant has its slot to itself."""
    if world.memory.words[slot] != word:
        raise PromiseBroken(SHARED, f"slot {slot} is {world.memory.words[slot]}, and a participant has it as {word}")
