"""The bytes of a record: the envelope, packed histograms, protobuf messages.

Used within `record`, and by `torchgraph_tensorboard.metadata`, which needs the format's version.
"""
