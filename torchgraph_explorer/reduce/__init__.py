"""Makes rows of numbers of tensors, on the device where they are. Imports torch; knows nothing of modules."""
