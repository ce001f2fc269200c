"""Compiled code as libraries and modules: in files, in this process, in the C runtime."""
