"""`python -m contracts.loading [PATH...]` checks scenario files or folders and prints what is wrong."""

import sys

from contracts.loading.files import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
