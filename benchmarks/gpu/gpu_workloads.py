"""The workloads that batches on a GPU are timed with."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Workload:
    """Items of so many columns."""

    columns: tuple[tuple[int, int], ...]  # (pieces, bytes of a piece in the longest items).
    least: float = 1.0  # Items have so much of the longest ones' length, or more.

    @property
    def widths(self) -> list[int]:
        """Bytes of each column of the longest items."""
        return [pieces * piece_bytes for pieces, piece_bytes in self.columns]

    @property
    def mean_bytes(self) -> float:
        """Of an item."""
        return sum(self.widths) * (1 + self.least) / 2

    @property
    def mean_piece_bytes(self) -> float:
        return self.mean_bytes / sum(pieces for pieces, _ in self.columns)


WORKLOADS = {
    "W1": Workload(((4, 11_000), (4, 3_000))),
    "W2": Workload(((4, 96_000), (4, 1_000))),
    "W3": Workload(((4, 3_000_000),)),
    "W4": Workload(((1, 4_096), (1, 4_096), (1, 1_024)), least=1 / 16),  # 64 to 1024 tokens.
    "W5": Workload(((4, 564_480),)),
}

# Of tables. A gather of 256 by itself reads from as many bytes: twice the batch's, 1 GiB at most.
ITEMS = {"W1": 4096, "W2": 512, "W3": 88, "W5": 472}
