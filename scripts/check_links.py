#!/usr/bin/env python3
"""Checks that every relative link of the Markdown documents leads to a file of the tree."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def main() -> int:
    broken = 0
    for path in sorted(ROOT.rglob("*.md")):
        name = path.relative_to(ROOT)
        if name.parts[0] == "build" or name.parts[0].startswith("."):
            continue
        for target in LINK.findall(path.read_text()):
            if "://" not in target and not (path.parent / target).exists():
                print(f"{name}: {target} does not exist")
                broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
