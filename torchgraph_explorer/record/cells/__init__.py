"""The index of cells: one number for each module, statistic and step, from which the x-ray is drawn."""
