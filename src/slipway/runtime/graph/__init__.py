"""Running a compiled model: its graph, the values it gets, executors that run or measure it."""
