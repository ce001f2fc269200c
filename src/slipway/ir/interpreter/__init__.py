"""The reference interpreter: functions of loops on NumPy arrays, slowly and exactly."""
