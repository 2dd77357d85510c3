"""`with` over whatever has to be closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Closed when its block ends, however it ends."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held; a second time does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
