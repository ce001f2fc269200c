"""Schedules for microcontrollers: one accumulator at a time, nothing stored twice."""
