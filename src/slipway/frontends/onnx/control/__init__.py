"""Loop and If: a loop's body, how often it runs, what it becomes; branches of unequal sizes."""
