"""Schedules for microcontrollers."""
