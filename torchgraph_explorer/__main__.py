"""The command line, as `python -m torchgraph_explorer`."""

from torchgraph_explorer.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
