"""The device that the tests of devices use: the CPU's twin, or the emulated GPU."""

import os

DEVICE = os.environ.get("GEAR_REVERB_TEST_DEVICE", "cpu")
# Arguments of samplers.
ON_DEVICE = {"device": DEVICE} if DEVICE == "cpu" else {"device": DEVICE, "out": "torch"}
