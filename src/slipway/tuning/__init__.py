"""Tuning: the fastest strategy and knobs of each kernel of a model, measured on the device itself.

`task` finds what there is to decide in a model, `space` lists the choices, `build` compiles some of
them into one library, `measure` times them beside the default choice, `search` decides what to try
next, `database` keeps every trial, `tune` spends the trials where a model's time is.

The classic facades, `slipway.meta_schedule` and `slipway.autotvm`, stand on this.
"""
