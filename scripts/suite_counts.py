"""How many tests passed, failed and were skipped."""

import dataclasses
import pathlib
import xml.etree.ElementTree as ElementTree


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: "Counts") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes

    def fail(self, note: str) -> "Counts":
        self.failed += 1
        self.notes.append(note)
        return self


def read_junit(path: pathlib.Path) -> Counts:
    """Counts the cases of a JUnit file as pytest, GoogleTest and CTest write it."""
    counts = Counts()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            counts.skipped += 1
        else:
            counts.passed += 1
    return counts
