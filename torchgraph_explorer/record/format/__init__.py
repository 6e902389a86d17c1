"""The bytes of a record: the envelope, packed histograms, protobuf messages."""
