"""Tensors kept whole, in segments of their own: reading frames never touches them."""
