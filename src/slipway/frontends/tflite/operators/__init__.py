"""Converters of TFLite operators, one family a file; the table beside this folder lists them."""
