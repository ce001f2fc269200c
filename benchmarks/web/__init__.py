"""Whole models as WebAssembly in node or in Chromium, beside onnxruntime-web and LiteRT.js."""

from benchmarks.web.command import main

__all__ = ["main"]
