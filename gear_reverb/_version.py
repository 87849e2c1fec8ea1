"""The one place that holds the version; setup.py compiles it into the native module too."""

__version__ = "0.1.0"
