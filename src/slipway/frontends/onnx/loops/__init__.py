"""The operator Loop: its body, how often it runs, and the loop that it becomes."""
