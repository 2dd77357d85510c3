"""What people call the records and signers of a stage.

Rule: a hash is looked up, never guessed; what has no name is shown short.
"""

from __future__ import annotations

from functools import cached_property

from lace.records.model import Plex, Seal
from lace.testing.simulator.scene import PEOPLE
from lace.testing.simulator.stage import Stage, key_of

SHORT = 8  # letters of a hash that has no name


class Names:
    """Names of one stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @cached_property
    def people(self) -> dict[str, str]:
        """Signers by verifier."""
        return {str(key_of(person).verifier): person for person in dict.fromkeys([*self._stage.names, *PEOPLE])}

    @cached_property
    def _records(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, lace in enumerate(self._stage.laces):
            for record in self._stage.held(number):
                if str(record) not in found:
                    inner = lace.load(record).record
                    plex = inner.plex if isinstance(inner, Seal) else inner
                    found[str(record)] = self.shown(plex.name) if isinstance(plex, Plex) else shortened(str(record))
        return found

    def of(self, record: str) -> str:
        """A record by its name."""
        return self._records.get(record) or shortened(record)

    def shown(self, name: str) -> str:
        """A name of a record; a key in it by the name of whose it is."""
        return f"{self.people[name]}’s key" if name in self.people else name or "a record without a name"


def shortened(text: str) -> str:
    """The start of a hash."""
    return f"{text[:SHORT]}…" if len(text) > SHORT else text
