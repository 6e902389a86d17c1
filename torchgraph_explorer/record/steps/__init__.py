"""What one step recorded: its rows, where they are, and their history."""
