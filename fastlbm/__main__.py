"""`python -m fastlbm` is the command `fastlbm`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
