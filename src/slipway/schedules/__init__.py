"""How operators are computed on each kind of target: tuned schedules and the choice of one."""
