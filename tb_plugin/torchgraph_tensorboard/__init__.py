"""The TensorBoard tab: `loader` is its entry point, `sink` what a training writes for it."""
