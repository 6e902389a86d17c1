"""`python -m torchgraph_explorer.cli`."""

import sys

from torchgraph_explorer.cli import main

sys.exit(main())
