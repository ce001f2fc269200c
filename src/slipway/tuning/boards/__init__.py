"""Searches for microcontrollers: in an emulator, or on a board at a cable."""
