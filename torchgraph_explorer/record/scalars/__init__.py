"""What the training loop logged: values of scalars over steps, and notes. Used within `record`."""
