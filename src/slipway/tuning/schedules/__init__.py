"""Tasks whose candidates are schedules: of te computations, and of functions of loops."""
