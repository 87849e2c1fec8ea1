"""The name `reverb` for this package, so that programs written for dm-reverb run unmodified."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence

_OURS = __name__.partition(".")[0]
_ALIAS = "reverb"


def install_as_reverb(*, force: bool = False) -> None:
    """Makes `import reverb`, and of every submodule, give this package. May be called again.

    The modules are the same objects under both names, so classes are the same classes.

    Args:
      force: Whether to replace dm-reverb where it has been imported already. Modules that hold on
        to parts of it keep them.

    Raises:
      ImportError: If dm-reverb has been imported and `force` is not set.
    """
    present = sys.modules.get(_ALIAS)
    ours = sys.modules[_OURS]
    if present is not None and present is not ours and not force:
        raise ImportError(
            f"{_ALIAS} has already been imported from {getattr(present, '__file__', None)}. Call "
            "gear_reverb.install_as_reverb() before anything imports it, or with force=True."
        )
    for name in list(sys.modules):
        if name.partition(".")[0] == _ALIAS:
            del sys.modules[name]
    for name, module in list(sys.modules.items()):
        root, _, rest = name.partition(".")
        if root == _OURS and not any(part.startswith("_") for part in rest.split(".")):
            sys.modules[f"{_ALIAS}.{rest}" if rest else _ALIAS] = module
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds submodules of `reverb` that were not imported when the alias was made."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, rest = fullname.partition(".")
        if root != _ALIAS or sys.modules.get(_ALIAS) is not sys.modules[_OURS]:
            return None
        name = f"{_OURS}.{rest}" if rest else _OURS
        if rest and importlib.util.find_spec(name) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(name))


class _Loader(importlib.abc.Loader):
    """Gives the module of the other name, and leaves it as it is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec  # The import system has put the alias's in its place.
