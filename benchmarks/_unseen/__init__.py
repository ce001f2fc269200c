"""The lists of networks of the benchmark `unseen`."""
