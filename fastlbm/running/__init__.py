"""One agent at work: a whole episode, or one step at a time."""
