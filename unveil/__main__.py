"""`python -m unveil` is the `unveil` command."""

import sys

from unveil.cli.main import main

sys.exit(main())
