"""A model in three lines: compile it, call it, carry it to a device.

    m = slipway.compile("mobilenet.onnx", target="raspberry-pi/4b-aarch64")
    print(m.on("raspberrypi.local:9090")(image))
    m.save("mobilenet.tar")

The classic objects are underneath: `Model.library` is what `relay.build` or `load_module`
returned, and `Model.executor` the GraphModule that runs.
"""
