"""A farm of virtual devices on this machine: started by one command, ended by another."""
