"""Microcontrollers: kernels written by hand, and direct schedules."""
