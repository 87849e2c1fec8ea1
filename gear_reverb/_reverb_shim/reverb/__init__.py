"""Stands for dm-reverb in the processes that a program under the alias starts.

Found by way of PYTHONPATH, which `gear_reverb run` sets; replaces itself by gear_reverb.
"""

import gear_reverb

gear_reverb.install_as_reverb(force=True)
