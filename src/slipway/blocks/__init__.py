"""TensorIR: loops around blocks (`slipway.ir.stmt.Block`), and the schedule that rewrites them."""
