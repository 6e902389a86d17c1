"""`python -m torchgraph_explorer.server LOGDIR`: the child process of a training."""

from torchgraph_explorer.server.standalone import main

main()
