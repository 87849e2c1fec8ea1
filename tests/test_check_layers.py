"""scripts/check_layers.py passes this tree and catches each kind of violation."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CMAKE = """
gear_reverb_layer(base DEPENDS absl::status)
gear_reverb_layer(tensor DEPENDS gr_base)
gear_reverb_layer(table DEPENDS gr_tensor
                  gr_base)
# gear_reverb_layer(base DEPENDS gr_table) is only a comment.
gear_reverb_layer(rpc DEPENDS gr_table gear_reverb_grpc)
gear_reverb_layer(client DEPENDS gr_rpc)
gear_reverb_layer(server DEPENDS gr_rpc)
"""


def check(root: pathlib.Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "scripts" / "check_layers.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def tree(tmp_path):
    """A function that makes a tree of the given files and returns the checker's verdict."""

    def make(cmake: str = CMAKE, **files: str) -> tuple[int, str]:
        (tmp_path / "CMakeLists.txt").write_text(cmake)
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_py", ".py").replace("_h", ".h")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return check(tmp_path)

    return make


def test_this_tree_is_clean():
    assert check(ROOT) == (0, "")


def test_layers_reach_what_is_below_them(tree):
    status, output = tree(
        native__base__a_h='#include <vector>\n#include "absl/status/status.h"\n',
        native__table__a_h='#include "native/base/a.h"\n#include "native/table/b.h"\n',
        native__client__a_h='#include "native/base/a.h"\n#include <grpcpp/grpcpp.h>\n',
        native__bindings__a_h='#include <pybind11/pybind11.h>\n#include "native/server/a.h"\n',
    )
    assert (status, output) == (0, "")


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("native__base__a_h", '"native/table/a.h"'),  # Up.
        ("native__client__a_h", '"native/server/a.h"'),  # Sideways.
        ("native__tensor__a_h", '"native/bindings/a.h"'),
        ("native__tensor__a_h", '"native/nowhere/a.h"'),
        ("native__table__a_h", "<grpcpp/grpcpp.h>"),  # Only rpc and above know gRPC.
        ("native__rpc__a_h", "<pybind11/pybind11.h>"),
        ("native__extra__a_h", "<vector>"),  # Not a layer at all.
    ],
)
def test_an_include_that_does_not_point_down_is_named(tree, file, include):
    status, output = tree(**{file: f"// A comment.\n#include {include}\n"})
    assert status == 1
    assert output.startswith(file.replace("__", "/").replace("_h", ".h"))


def test_layers_in_a_circle_are_refused(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "gear_reverb_layer(a DEPENDS gr_b)\ngear_reverb_layer(b DEPENDS gr_a)\n"
    )
    command = [sys.executable, str(ROOT / "scripts" / "check_layers.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "circle" in done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import tensorflow as tf\n",
        "from torch.utils import dlpack\n",
        "from gear_reverb import _pattern_graph\n",
        "from gear_reverb._pattern_graph import PatternDataset\n",
        "try:\n    import jax\nexcept ImportError:\n    jax = None\n",
        "class A:\n    import torch\n",
        "from gear_reverb import tf_client\n",
        "import gear_reverb.tf_client\n",
    ],
)
def test_a_framework_imported_at_once_is_named(tree, code):
    status, output = tree(gear_reverb__x_py=code)
    assert status == 1
    assert output.startswith("gear_reverb/x.py:")


def test_tensorflows_side_imports_tensorflow(tree):
    assert tree(gear_reverb__tf_client_py="import tensorflow as tf\n") == (0, "")


def test_lazy_and_typing_imports_of_frameworks_are_fine(tree):
    status, output = tree(
        gear_reverb__x_py=(
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    import torch\n"
            "def f():\n    import tensorflow as tf\n    return tf\n"
        )
    )
    assert (status, output) == (0, "")
