"""The programs that the guides show run as they stand there."""

import pathlib
import re

import pytest

GUIDES = pathlib.Path(__file__).parents[1] / "docs" / "guides"


@pytest.mark.parametrize("guide", ["batches", "writing"])
def test_its_program_runs(guide):
    text = (GUIDES / f"{guide}.md").read_text()
    [program] = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    exec(compile(program, f"{guide}.md", "exec"), {})
