"""What runs in the training process, and joins capture, reduction and sinks."""
